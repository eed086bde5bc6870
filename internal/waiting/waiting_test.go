package waiting_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/waiting"
)

// On a slow machine a short wait may be over before the second attempt has an answer.
func TestAWaitThatEndsWithoutAnAnswerSaysThatTheLockIsHeld(t *testing.T) {
	t.Parallel()
	for _, ended := range []func(context.Context) error{context.Cause, func(context.Context) error { return context.Canceled }} {
		synctest.Test(t, func(t *testing.T) {
			wait := time.Second
			_, err := waiting.AtMost(t.Context(), &wait,
				func(context.Context) (int, error) { return 0, &sqllock.HeldError{Name: "x"} },
				func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, ended(ctx)
				})
			if !errors.Is(err, sqllock.ErrHeld) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
}

// severalErrors cannot be compared, as errors of validators often cannot.
type severalErrors []error

func (severalErrors) Error() string { return "several" }

func TestACallerMayEndItsWaitWithAnyError(t *testing.T) {
	t.Parallel()
	for _, ended := range []error{context.Canceled, severalErrors{}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		wait := time.Hour
		_, err := waiting.AtMost(ctx, &wait,
			func(context.Context) (int, error) { return 0, &sqllock.HeldError{Name: "x"} },
			func(context.Context) (int, error) {
				cancel(severalErrors{})
				return 0, ended
			})
		if several := severalErrors(nil); !errors.As(err, &several) {
			t.Error(err)
		}
	}
}

// The database went away meanwhile: whether the lock is held now is unknown.
func TestAWaitThatEndsInAnOutageDoesNotSayThatTheLockIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		wait, away := time.Second, errors.New("the database is away")
		_, err := waiting.AtMost(t.Context(), &wait,
			func(context.Context) (int, error) { return 0, &sqllock.HeldError{Name: "x"} },
			func(ctx context.Context) (int, error) {
				<-ctx.Done()
				return 0, fmt.Errorf("%w: %w", context.Cause(ctx), away)
			})
		if errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, away) {
			t.Error(err)
		}
	})
}

// awayError is the error of a database that cannot be used now.
type awayError struct{}

func (awayError) Error() string   { return "the database is away" }
func (awayError) Retryable() bool { return true }

// The second attempt has no answer either.
func TestAWaitThatEndsWithoutAnAnswerSaysWhatTheTroubleWas(t *testing.T) {
	t.Parallel()
	tellsStep := func(ctx context.Context) error { return fmt.Errorf("no lease: %w", context.Cause(ctx)) }
	for _, ended := range []func(context.Context) error{context.Cause, tellsStep} {
		synctest.Test(t, func(t *testing.T) {
			wait := time.Second
			_, err := waiting.AtMost(t.Context(), &wait,
				func(context.Context) (int, error) { return 0, awayError{} },
				func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, ended(ctx)
				})
			if !errors.Is(err, awayError{}) || !sqllock.IsRetryable(err) {
				t.Error(err)
			}
		})
	}
}
