package otellock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/otellock"
)

// passing is an error of a database that waiting may mend.
type passing struct{ error }

func (passing) Retryable() bool { return true }

var (
	errHeld = fmt.Errorf("acquire: %w", &sqllock.HeldError{Name: "x"})
	errAway = passing{errors.New("the server is away")}
)

func TestAnErrorHasAnOutcomeAndAType(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the user left"))
	late, cancelLate := context.WithTimeoutCause(t.Context(), 0, errors.New("too late"))
	defer cancelLate()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		waited bool
		err    error
		want   string
	}{
		{"free", t.Context(), false, nil, "outcome=acquired"},
		{"held", t.Context(), false, errHeld, "error.type=held outcome=held"},
		{"held until the end of WithWait", t.Context(), true, errHeld, "error.type=held outcome=timeout"},
		{"no database until the end of WithWait", t.Context(), true, errAway, "error.type=unavailable outcome=timeout"},
		{"no database", t.Context(), false, errAway, "error.type=unavailable outcome=error"},
		{"a deadline", t.Context(), true, fmt.Errorf("%w: %w", errHeld, context.DeadlineExceeded), "error.type=timeout outcome=timeout"},
		{"a deadline with a cause", late, true, fmt.Errorf("%w: %w", errHeld, context.Cause(late)), "error.type=timeout outcome=timeout"},
		{"the caller left", canceled, true, fmt.Errorf("%w: %w", errHeld, context.Canceled), "error.type=canceled outcome=error"},
		{"the caller left, and said why", canceled, true, fmt.Errorf("%w: %w", errHeld, context.Cause(canceled)), "error.type=canceled outcome=error"},
		{"closed while it waits", t.Context(), true, fmt.Errorf("%w: %w", errHeld, sqllock.ErrClosed), "error.type=closed outcome=error"},
		{"refused", t.Context(), false, sqllock.ErrRefused, "error.type=refused outcome=error"},
		{"a standby", t.Context(), false, fmt.Errorf("%w: %w", sqllock.ErrRefused, sqllock.ErrReadOnly), "error.type=read_only outcome=error"},
		{"no tables", t.Context(), true, sqllock.ErrSchema, "error.type=schema outcome=error"},
		{"WithShared among permits", t.Context(), false, &leasetable.SharingError{Held: 2}, "error.type=_OTHER outcome=error"},
		{"anything else", t.Context(), false, errors.New("the text has order/17"), "error.type=_OTHER outcome=error"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := collect(t)
			e := sqllock.Event{Kind: event.Failed, Locker: event.Locker{Kind: "lease"}, Name: "x", Took: time.Second, Waited: test.waited, Err: test.err}
			if test.err == nil {
				e.Kind = event.Acquired
			}
			if test.waited {
				c.Hook(test.ctx, sqllock.Event{Kind: event.Waited, Locker: e.Locker, Name: "x", Took: time.Second, Err: test.err})
			}
			c.Hook(test.ctx, e)
			for instrument, counted := range map[string]bool{"sqllock.acquire.duration": true, "sqllock.wait.duration": test.waited} {
				got := c.points(t, instrument)
				if want := "map[" + sorted(test.want) + ":{1 1 s}]"; counted && fmt.Sprint(got) != want || !counted && len(got) > 0 {
					t.Errorf("%s is %v; want %s", instrument, got, want)
				}
			}
		})
	}
}

// sorted adds the kind to attributes in text.
func sorted(attrs string) string {
	var kind, outcome string
	if n, _ := fmt.Sscanf(attrs, "%s %s", &kind, &outcome); n == 2 {
		return kind + " kind=lease " + outcome
	}
	return "kind=lease " + attrs
}

// What the database said does not hide what happened to a lock.
func TestALossHasTheTypeOfTheLoss(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"lost":        fmt.Errorf("%w: %w", sqllock.ErrLost, context.DeadlineExceeded),
		"expired":     fmt.Errorf("%w: %w", sqllock.ErrExpired, errAway),
		"unavailable": errAway, // of a release
	} {
		c := collect(t)
		c.Hook(t.Context(), sqllock.Event{Kind: event.Lost, Locker: event.Locker{Kind: "session"}, Name: "x", Err: err})
		c.mustBe(t, "sqllock.lost", counts{"error.type=" + want + " kind=session": 1})
	}
}

func TestARecorderNeedsProviders(t *testing.T) {
	t.Parallel()
	for _, opt := range []otellock.Option{otellock.WithMeterProvider(nil), otellock.WithTracerProvider(nil)} {
		if _, err := otellock.New(opt); err == nil {
			t.Error("New accepts a provider that is nil")
		}
	}
}

// What holds no lock is not worth an alert when its renewal fails.
func TestARenewalThatKeepsNoLockIsNotCounted(t *testing.T) {
	t.Parallel()
	c := collect(t)
	for _, e := range []sqllock.Event{
		{Kind: event.Renewed},
		{Kind: event.RenewalFailed, Err: errAway},
		{Kind: event.Renewed, Locks: 3},
		{Kind: event.RenewalFailed, Locks: 3, Err: errAway},
	} {
		e.Locker.Kind = "session"
		c.Hook(t.Context(), e)
	}
	c.mustBe(t, "sqllock.renew.duration", counts{
		"kind=session outcome=renewed": 1, "error.type=unavailable kind=session outcome=error": 1,
	})
}
