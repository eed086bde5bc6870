package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

func wantShare(name string) session.Want[string] {
	return session.Want[string]{Name: name, Key: name, Shared: true}
}

// mustPanic calls f, in which user code is to panic.
func mustPanic(t *testing.T, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Error("it did not panic")
		}
	}()
	f()
}

// A hook of the driver runs in the caller's goroutine if that borrows the connection.
func TestUserCodeThatPanicsLeavesTheWaitQueue(t *testing.T) {
	t.Parallel()
	calls := map[string]func(l *session.Locker[string], panics func()){
		"TryAcquire": func(l *session.Locker[string], panics func()) {
			panics()
			_, _ = l.TryAcquire(context.Background(), want("x"))
		},
		"Acquire": func(l *session.Locker[string], panics func()) {
			panics()
			_, _ = l.Acquire(context.Background(), want("x"))
		},
		"Release": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), want("x"))
			panics()
			_ = lock.Release(context.Background())
		},
		"Release of a share": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), wantShare("x"))
			panics()
			_ = lock.Release(context.Background())
		},
		"Release of a lock that others wait for": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), want("x"))
			pass(2 * passTime) // from now on the server is asked
			go func() {
				if next, err := l.Acquire(context.Background(), want("x")); err == nil {
					_ = next.Release(context.Background())
				}
			}()
			synctest.Wait()
			_, _ = l.TryAcquire(context.Background(), want("y")) // the session does not watch its connection now
			synctest.Wait()
			panics()
			_ = lock.Release(context.Background())
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := s.newLocker(t)
				mustTry(t, l, "first") // a session
				synctest.Wait()
				mustPanic(t, func() { call(l, func() { s.delay(runs, lag{panics: true}, lag{}) }) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				lock, err := l.Acquire(ctx, want("x"))
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := l.TryAcquire(t.Context(), wantShare("x")); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// impatient is a context that panics when it is asked whether it has ended, once it is armed.
type impatient struct {
	context.Context
	armed bool
}

func (c *impatient) Err() error {
	if c.armed {
		panic("a context")
	}
	return c.Context.Err()
}

func TestAContextThatPanicsPassesOnWhatItWasHanded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newServer().newLocker(t)
		before := mustTry(t, l, "x")
		ctx := &impatient{Context: t.Context()}
		over := make(chan struct{})
		go func() {
			defer close(over)
			mustPanic(t, func() { _, _ = l.Acquire(ctx, want("x")) })
		}()
		synctest.Wait()
		ctx.armed = true
		if err := before.Release(t.Context()); err != nil {
			t.Error(err)
		}
		<-over
		synctest.Wait()
		if _, err := l.TryAcquire(t.Context(), want("x")); errors.Is(err, sqllock.ErrHeld) {
			t.Error(err)
		}
	})
}
