package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

func TestCallersThatWaitForTheFirstSessionDoNotFillItBeyondItsLimit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		const most = 5
		s.delay(pings, lag{answer: time.Second}) // until which all of them wait
		limits, err := session.NewLimits(8, most)
		if err != nil {
			t.Fatal(err)
		}
		l := s.newLockerWith(t, limits, nil)
		var all sync.WaitGroup
		for i := range 2 * most {
			all.Go(func() {
				if _, err := l.TryAcquire(t.Context(), want(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		held := make(map[*conn]int)
		for i := range 2 * most {
			if on := s.holder(fmt.Sprint(i)); on == nil {
				t.Errorf("nobody holds %d", i)
			} else if held[on]++; held[on] > most {
				t.Errorf("a session holds %d locks; want %d at most", held[on], most)
			}
		}
	})
}

// Tries that the server has not answered are no locks.
func TestCallsWithoutAnAnswerAreNoLimit(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		const most = 5
		l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: most}, nil) // one for tries
		other := s.newLocker(t)
		mustTry(t, l, "first")
		for i := range most {
			mustTry(t, other, fmt.Sprint(i))
		}
		s.delay(runs, lag{answer: time.Second}, lag{})
		var all sync.WaitGroup
		for i := range most {
			all.Go(func() {
				if _, err := l.TryAcquire(t.Context(), want(fmt.Sprint(i))); !errors.Is(err, sqllock.ErrHeld) {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		all.Go(func() {
			if _, err := l.TryAcquire(t.Context(), want("x")); err != nil {
				t.Error(err)
			}
		})
		if _, err := l.Acquire(t.Context(), want("y")); err != nil {
			t.Error(err)
		}
		all.Wait()
		mustTry(t, l, "4th")
		mustTry(t, l, "5th")
		if _, err := l.TryAcquire(t.Context(), want("6th")); !errors.Is(err, sqllock.ErrLimit) {
			t.Errorf("TryAcquire beyond the limit: %v", err)
		}
		if _, err := l.Acquire(t.Context(), want("7th")); !errors.Is(err, sqllock.ErrLimit) {
			t.Errorf("Acquire beyond the limit: %v", err)
		}
	})
}

func TestACallerThatWaitsForRoomLeavesWithItsContext(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 2}, nil)
		mustTry(t, l, "first")
		s.delay(runs, lag{answer: 2 * time.Second}, lag{})
		got := acquiring(t.Context(), l, want("second"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, want("x")); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sqllock.ErrLimit) {
			t.Errorf("Acquire: %v", err)
		}
		if r := <-got; r.err != nil {
			t.Error(r.err)
		}
	})
}
