package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/session"
)

// To try first mostly fails if another process held the key just now.
func TestAKeyThatAnotherProcessHeldJustNowIsNotTriedFor(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l, other := s.newLocker(t), s.newLocker(t)
		round := func() (tries int) {
			synctest.Wait() // the other Locker knows that its lock was released
			before := mustTry(t, other, "x")
			tried := len(s.statements(runs))
			releaseAfter(t, 100*time.Millisecond, before)
			lock, err := l.Acquire(t.Context(), want("x"))
			if err != nil {
				t.Fatal(err)
			}
			tries = len(s.statements(runs)) - tried - 1 // the release is one of them
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
			return tries
		}
		first, second := round(), round()
		pass(2 * time.Second)
		third := round()
		if first != 1 || second != 0 || third != 1 {
			t.Errorf("it tried %d times, then %d, and %d after a while", first, second, third)
		}
	})
}

func TestAKeyThatAnotherProcessHeldJustNowIsSaidToBeHeld(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		s.delay(waits, lag{answer: 150 * time.Millisecond})
		l := s.newLocker(t)
		mustTry(t, s.newLocker(t), "x")
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := l.Acquire(ctx, want("x"))
			cancel()
			if !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Acquire: %v", err)
			}
		}
	})
}

// The only session for waits is taken.
func TestAKeyThatIsFreeAgainIsTriedForWhereNoSessionWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l, other := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 100}, nil), s.newLocker(t)
		mustTry(t, other, "busy")
		x := mustTry(t, other, "x")
		busy, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := l.Acquire(busy, want("busy"))
			left <- err
		}()
		pass(100 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(ctx, want("x")); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("Acquire: %v", err)
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		began := time.Now()
		if _, err := l.Acquire(t.Context(), want("x")); err != nil || time.Since(began) != 0 {
			t.Errorf("a free key was acquired after %v: %v", time.Since(began), err)
		}
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestWhoGetsAKeyWithoutAWaitIsNotSaidToWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		var told []event.Kind
		l := s.newLockerTold(t, func(_ context.Context, e sqllock.Event) { told = append(told, e.Kind) })
		x := mustTry(t, s.newLocker(t), "x")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(ctx, want("x")); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("Acquire: %v", err)
		}
		if err := x.Release(t.Context()); err != nil {
			t.Error(err)
		}
		pass(500 * time.Millisecond)
		told = nil
		if _, err := l.Acquire(t.Context(), want("x")); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(told, event.Waiting) {
			t.Errorf("events: %v", told)
		}
	})
}
