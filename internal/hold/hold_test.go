package hold_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// free is a backend that a test makes of a function.
type free func(context.Context) error

func (f free) Free(ctx context.Context) error { return f(ctx) }

func TestReleaseCallsBackOnceAndAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	calls := 0
	var h *hold.Hold
	h = hold.New(t.Context(), "name", free(func(ctx context.Context) error {
		calls++
		if ctx.Err() != nil {
			t.Error("the release was given a context that has ended")
		}
		if !errors.Is(context.Cause(h.Context()), sqllock.ErrReleased) {
			t.Errorf("the lock's context at the release: %v", context.Cause(h.Context()))
		}
		return errors.New("server says no")
	}))
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	first, second := h.Release(dead), h.Release(t.Context())
	if calls != 1 || first == nil || !errors.Is(second, first) {
		t.Fatalf("%d calls, Release = %v, then %v", calls, first, second)
	}
	var op *sqllock.OpError
	if !errors.As(first, &op) || op.Op != "release" || op.Name != "name" {
		t.Errorf("Release = %#v; want an *OpError", first)
	}
}

func TestTheFirstCauseStays(t *testing.T) {
	t.Parallel()
	h := hold.New(t.Context(), "name", free(func(context.Context) error { return nil }))
	h.End(sqllock.ErrLost)
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if cause := context.Cause(h.Context()); !errors.Is(cause, sqllock.ErrLost) {
		t.Errorf("the cause is %v", cause)
	}
}

// The holder of a lock cannot reach what is for backends.
func TestTheLockOfAUserHasTheMethodsOfALockOnly(t *testing.T) {
	t.Parallel()
	h := hold.New(t.Context(), "name", free(func(context.Context) error { return nil }))
	if n, want := reflect.TypeOf(h.Lock()).NumMethod(), reflect.TypeFor[sqllock.Lock]().NumMethod(); n != want {
		t.Errorf("it has %d methods, and a Lock has %d", n, want)
	}
	if h.Lock().Name() != "name" || h.Lock().Context() != h.Context() {
		t.Error("it is another lock")
	}
}

func TestAReleaseWithoutAContextPanicsBeforeAnythingEnds(t *testing.T) {
	t.Parallel()
	calls := 0
	h := hold.New(t.Context(), "name", free(func(context.Context) error { calls++; return nil }))
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		_ = h.Release(nil) //nolint:staticcheck // the mistake
	}()
	if err := h.Context().Err(); err != nil {
		t.Errorf("the lock has ended: %v", err)
	}
	if err := h.Release(t.Context()); err != nil || calls != 1 {
		t.Errorf("Release = %v, and the backend was told %d times", err, calls)
	}
}

func TestAReleaseThatPanicsIsNotConfirmed(t *testing.T) {
	t.Parallel()
	var told []error
	h := hold.New(t.Context(), "name", free(func(context.Context) error { panic("a hook of the driver") }))
	h.Watch(func(err error) { told = append(told, err) })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it did not panic")
			}
		}()
		_ = h.Release(t.Context())
	}()
	if err := h.Release(t.Context()); err == nil {
		t.Error("the second release says that the lock is free")
	}
	if len(told) != 1 || told[0] == nil {
		t.Errorf("the watcher was told %v", told)
	}
}

// A release and the end of a lock may come at the same time.
func TestTheWatcherIsCalledOnceWhateverEndsALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 500 {
			var told []error
			h := hold.New(t.Context(), "name", free(func(context.Context) error { return nil }))
			h.Watch(func(err error) { told = append(told, err) })
			go h.End(sqllock.ErrLost)
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			lost := errors.Is(context.Cause(h.Context()), sqllock.ErrLost)
			if len(told) != 1 || lost != errors.Is(told[0], sqllock.ErrLost) || !lost && told[0] != nil {
				t.Fatalf("the end of the lock is %v, and the watcher was told %v", context.Cause(h.Context()), told)
			}
		}
	})
}

// The program may end when the release has returned.
func TestTheReleaseOfALostLockWaitsForTheWatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told := false
		h := hold.New(t.Context(), "name", free(func(context.Context) error { return sqllock.ErrLost }))
		h.Watch(func(error) {
			<-time.After(100 * time.Millisecond)
			told = true
		})
		h.End(sqllock.ErrLost)
		if err := h.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) || !told {
			t.Errorf("Release = %v, and the watcher was told: %v", err, told)
		}
	})
}

func TestAWatcherCanReleaseALostLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hold.New(t.Context(), "name", free(func(context.Context) error { return sqllock.ErrLost }))
		released := make(chan error, 1)
		h.Watch(func(error) { released <- h.Release(t.Context()) })
		h.End(sqllock.ErrLost)
		if err := <-released; !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release = %v", err)
		}
	})
}
