package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/internal/option"
)

// slow is a Locker whose names each come free when somebody has waited for them for so long.
type slow time.Duration

func (s slow) TryAcquire(_ context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	return nil, &sqllock.HeldError{Name: name}
}

func (s slow) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	o, _, _ := option.Read[struct{}](opts)
	if o.Wait != nil && *o.Wait < time.Duration(s) {
		<-time.After(*o.Wait)
		return nil, &sqllock.HeldError{Name: name}
	}
	<-time.After(time.Duration(s))
	return hold.New(ctx, name, freed{}).Lock(), nil
}

// freed is a lock whose release returns an error.
type freed struct{ err error }

func (f freed) Free(context.Context) error { return f.err }

func TestTheTimeToWaitIsForAllNamesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c", "d", "e"}
		for wait, enough := range map[time.Duration]bool{4 * time.Second: false, 5 * time.Second: true} {
			began := time.Now()
			all, err := sqllock.AcquireAll[sqllock.Lock](t.Context(), slow(time.Second), names, sqllock.WithWait(wait))
			if enough != (err == nil) || err != nil && !errors.Is(err, sqllock.ErrHeld) || time.Since(began) != wait {
				t.Errorf("within %v: %v after %v", wait, err, time.Since(began))
			}
			if err == nil {
				if err := all.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

func TestAFunctionThatIsNilAcquiresNothing(t *testing.T) {
	t.Parallel()
	var nobody sqllock.Locker // is not called
	_, tried := sqllock.TryDo(t.Context(), nobody, "x", nil)
	_, triedWith := sqllock.TryDoWith(t.Context(), nobody, "x", nil)
	for how, err := range map[string]error{
		"Do":        sqllock.Do(t.Context(), nobody, "x", nil),
		"DoWith":    sqllock.DoWith(t.Context(), nobody, "x", nil),
		"TryDo":     tried,
		"TryDoWith": triedWith,
	} {
		if err == nil {
			t.Errorf("%s: no error", how)
		}
	}
}

// A function that returns why its context ended says the same as the release.
func TestALossIsSaidOnce(t *testing.T) {
	t.Parallel()
	lost := errors.New("lost")
	err := sqllock.Do(t.Context(), losing{lost}, "x", func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, lost) || err.Error() != lost.Error() {
		t.Errorf("the error is %q", err)
	}
}

// losing is a Locker whose locks are lost at once.
type losing struct{ err error }

func (l losing) TryAcquire(ctx context.Context, name string, _ ...sqllock.Option) (sqllock.Lock, error) {
	h := hold.New(ctx, name, freed(l))
	h.End(l.err)
	return h.Lock(), nil
}

func (l losing) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return l.TryAcquire(ctx, name, opts...)
}
