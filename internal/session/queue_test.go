package session_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

func TestThoseWhoComeWhileAStatementIsUnderWayShareTheNext(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		mustTry(t, l, "kept")
		s.delay(runs, lag{answer: time.Second}, lag{})
		names := []string{"first", "a", "b", "c", "d", "e"}
		failed := make(chan error, len(names))
		for _, name := range names {
			go func() {
				_, err := l.TryAcquire(t.Context(), want(name))
				failed <- err
			}()
			synctest.Wait() // it is in the queue
		}
		for range names {
			if err := <-failed; err != nil {
				t.Error(err)
			}
		}
		var asked [][]string
		for _, sent := range s.statements(runs)[1:] {
			asked = append(asked, sent.keys)
		}
		if want := [][]string{names[:1], names[1:]}; fmt.Sprint(asked) != fmt.Sprint(want) {
			t.Errorf("the statements asked for %v; want %v", asked, want)
		}
	})
}

// I44.
func TestACallerWhoLeavesHasNothingAndCostsNobodyALock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		kept := mustTry(t, l, "kept")
		s.delay(runs, lag{answer: 2 * time.Second}, lag{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := l.TryAcquire(ctx, want("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a caller who left: %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("it left after %v", took)
		}
		if !s.isHeld() {
			t.Fatal("the server has not granted the lock")
		}
		pass(time.Second)
		synctest.Wait()
		if s.isHeld() {
			t.Error("what nobody has is held")
		}
		if err := kept.Context().Err(); err != nil {
			t.Error(context.Cause(kept.Context()))
		}
	})
}

// I46.
func TestThoseWhoWaitInOneProcessGetTheLockInTheirOrder(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		const waiters = 20 // more than get the lock without a statement
		l := s.newLocker(t)
		lock := mustTry(t, l, "x")
		var order []int
		got := make(chan sqllock.Lock)
		for i := range waiters {
			go func() {
				lock, err := l.Acquire(t.Context(), want("x"))
				if err != nil {
					t.Error(err)
				}
				order = append(order, i)
				got <- lock
			}()
			synctest.Wait()
		}
		for range waiters {
			if err := lock.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			lock = <-got
		}
		if !slices.IsSorted(order) {
			t.Errorf("they got it in the order %v", order)
		}
	})
}

func TestCloseGivesAStatementThatHangsASecond(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		lock := mustTry(t, l, "x")
		s.delay(runs, lag{hangs: true})
		failed := make(chan error, 1)
		go func() {
			_, err := l.TryAcquire(t.Context(), want("y"))
			failed <- err
		}()
		synctest.Wait()
		began := time.Now()
		l.Close()
		if took := time.Since(began); took != time.Second {
			t.Errorf("Close took %v", took)
		}
		if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrClosed) {
			t.Errorf("the lock ended with: %v", cause)
		}
		if err := <-failed; !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("the caller was told: %v", err)
		}
	})
}

func TestAWaitThatTheServerTookForSilentBeginsAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l, other := s.newLocker(t), s.newLocker(t)
		held := mustTry(t, other, "x")
		s.mu.Lock()
		s.ignored = 3
		s.mu.Unlock()
		taken := make(chan error, 1)
		go func() {
			_, err := l.Acquire(t.Context(), want("x"))
			taken <- err
		}()
		pass(5 * time.Second)
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}

// past is a context whose deadline, a time of day, has passed by a clock that was set ahead.
type past struct{ context.Context }

func (past) Deadline() (time.Time, bool) { return time.Now().Add(-time.Hour), true }

func TestAWaitWhoseDeadlinePassedByTheClockAloneIsNotHurried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		releaseAfter(t, 10*time.Second, mustTry(t, s.newLocker(t), "x"))
		if _, err := s.newLocker(t).Acquire(past{t.Context()}, want("x")); err != nil {
			t.Fatal(err)
		}
		if s.hurried > 0 {
			t.Errorf("%d slices of the wait had no time left", s.hurried)
		}
	})
}

func TestAWaitEndsAtTheInstantThatItsCallerLeaves(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l, other := s.newLocker(t), s.newLocker(t)
		held := mustTry(t, other, "x")
		s.delay(waits, lag{answer: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := l.Acquire(ctx, want("x")); !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Acquire: %v", err)
		}
		if took := time.Since(began); took != 250*time.Millisecond {
			t.Errorf("it left after %v", took)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// wantedShare has l hold a share, has the server say that another process waits for the whole lock, and returns what to
// ask for to join the share.
func wantedShare(t *testing.T, s *server, l *session.Locker[string]) session.Want[string] {
	t.Helper()
	share := session.Want[string]{Name: "x", Key: "x", Shared: true}
	if _, err := l.TryAcquire(t.Context(), share); err != nil {
		t.Fatal(err)
	}
	s.setWaiters(1)
	pass(time.Second)
	return share
}

// I48. The question for waiters needs no room for a lock.
func TestAShareIsNotJoinedPastAWaiterWhereNoSessionHasRoom(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 1}, nil)
		share := wantedShare(t, s, l)
		if _, err := l.TryAcquire(t.Context(), share); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryAcquire: %v", err)
		}
	})
}

// I48.
func TestACallerWhoLeavesBeforeTheAnswerDoesNotJoinAShareAndLetsNobodyJoin(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		share := wantedShare(t, s, l)
		s.delay(holders, lag{answer: 100 * time.Millisecond}, lag{})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := l.TryAcquire(ctx, share); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire of a caller who left: %v", err)
		}
		if _, err := l.TryAcquire(t.Context(), share); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryAcquire: %v", err)
		}
	})
}

// I48. The answer that counts before is an old one: nobody waited then.
func TestNobodyJoinsAShareWhileTheServerIsAskedWhetherSomebodyWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		share := wantedShare(t, s, l)
		s.delay(holders, lag{answer: 100 * time.Millisecond}, lag{})
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				if _, err := l.TryAcquire(t.Context(), share); !errors.Is(err, sqllock.ErrHeld) {
					t.Errorf("TryAcquire: %v", err)
				}
			})
			pass(10 * time.Millisecond)
		}
		callers.Wait()
	})
}

// I48. The share that a waiter leaves, to join the one that is held, may still be in the wait queue then.
func TestAWaiterForAShareJoinsTheHeldOneSoonAfterTheWriterHasLeft(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		reader := acquiring(t.Context(), l, wantedShare(t, s, l))
		before := len(s.statements(holders))
		pass(time.Minute)
		if asked := len(s.statements(holders)) - before; asked > 100 {
			t.Errorf("the server was asked %d times in a minute whether somebody waits", asked)
		}
		s.setWaiters(0)
		pass(2 * time.Second)
		select {
		case got := <-reader:
			if got.err != nil {
				t.Error(got.err)
			}
		default:
			t.Error("nobody waits for the exclusive lock, and the share is not joined")
		}
	})
}

// A waiter for a share is about to join the held one, which is given back at that moment.
func TestAWaiterForAShareThatLeavesSaysThatItWasHeldAlsoWhenItChangedShares(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		share := session.Want[string]{Name: "x", Key: "x", Shared: true}
		current, err := l.TryAcquire(t.Context(), share)
		if err != nil {
			t.Fatal(err)
		}
		s.setWaiters(1)
		pass(time.Second)
		ended, cancel := context.WithCancel(t.Context())
		defer cancel()
		ctx := &staller{Context: ended, stall: time.Second}
		reader := acquiring(ctx, l, share)
		pass(time.Minute)
		s.delay(holders, lag{answer: time.Millisecond})
		s.setWaiters(0)
		for before := len(s.statements(holders)); len(s.statements(holders)) == before; {
			pass(time.Millisecond / 4)
		}
		ctx.armed.Store(true) // the caller stalls between the two shares
		pass(time.Second / 2)
		s.delay(runs, lag{answer: 5 * time.Second})
		released := make(chan error, 1)
		go func() { released <- current.Release(t.Context()) }()
		pass(time.Second)
		cancel()
		if got := <-reader; !errors.Is(got.err, sqllock.ErrHeld) || !errors.Is(got.err, context.Canceled) {
			t.Errorf("Acquire: %v", got.err)
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
	})
}

func TestAShareThatWasWaitedForIsJoinedByATry(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		other := mustTry(t, s.newLocker(t), "x")
		releaseAfter(t, 100*time.Millisecond, other)
		share := session.Want[string]{Name: "x", Key: "x", Shared: true}
		if _, err := l.Acquire(t.Context(), share); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			lock, err := l.TryAcquire(t.Context(), share)
			if err != nil {
				t.Fatalf("another share: %v", err)
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
