package session_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/session"
)

// curious is a context whose methods ask a Locker something, as one does whose mutex a user of the Locker holds.
type curious struct {
	context.Context
	l *session.Locker[string]
}

func (c curious) Deadline() (time.Time, bool) {
	c.l.Remaining()
	return c.Context.Deadline()
}

func (c curious) Done() <-chan struct{} {
	c.l.Remaining()
	return c.Context.Done()
}

func (c curious) Err() error {
	c.l.Remaining()
	return c.Context.Err()
}

func (c curious) Value(key any) any {
	c.l.Remaining()
	return c.Context.Value(key)
}

// If one of them does, the test hangs.
func TestNoMutexIsHeldWhileAContextIsAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		mustTry(t, l, "open") // a session
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lock, err := l.TryAcquire(curious{ctx, l}, want("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Acquire(curious{ctx, l}, want("y")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := l.Acquire(curious{ctx, l}, session.Want[string]{Name: "z", Key: "z", Shared: true}); err != nil {
				t.Fatal(err)
			}
		}
		if err := lock.Release(curious{ctx, l}); err != nil {
			t.Fatal(err)
		}
		pass(100 * time.Millisecond) // no caller borrows the connection
		s.delay(runs, lag{answer: time.Second}, lag{})
		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if _, err := l.TryAcquire(curious{soon, l}, want("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire: %v", err)
		}
	})
}
