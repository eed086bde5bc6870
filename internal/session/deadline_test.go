package session_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// A holder learns of the loss before another client can acquire its lock: 5/6 of the TTL after it sent the last
// statement that the server confirmed, however late the response came, and whatever the driver is doing. In virtual
// time this is exact.

const (
	ttl        = 30 * time.Second
	trustedFor = 25 * time.Second // 5/6 of ttl

	shortTTL       = 12 * time.Second
	shortlyTrusted = 10 * time.Second // less than the opening of a connection may take
)

// rounds is how often a test repeats a race of two timers that are due at the same time, because they fire in any
// order.
const rounds = 20

func want(name string) session.Want[string] { return session.Want[string]{Name: name, Key: name} }

func mustTry(t *testing.T, l *session.Locker[string], name string) sqllock.Lock {
	t.Helper()
	lock, err := l.TryAcquire(t.Context(), want(name))
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// mustEndAt waits for the end of a lock, which only its deadline ends.
func mustEndAt(t *testing.T, lock sqllock.Lock, deadline func() time.Time) {
	t.Helper()
	select {
	case <-lock.Context().Done():
	case <-time.After(10 * ttl):
		t.Fatal("the lock did not end")
	}
	if late := time.Since(deadline()); late != 0 {
		t.Errorf("the lock ended %v after its deadline", late)
	}
	if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
		t.Errorf("the lock ended with: %v", cause)
	}
}

// onBoth runs a test with connections whose response another caller can await, and with others.
func onBoth(t *testing.T, test func(t *testing.T, s *server)) {
	t.Helper()
	for _, resumes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.resumes = resumes
			test(t, s)
		})
	}
}

// I3.
func TestASessionIsTrustedFromWhenItsLastStatementWasSentHoweverLateTheAnswerIs(t *testing.T) {
	t.Parallel()
	for _, slow := range []lag{{}, {answer: 2 * time.Second}, {request: 2 * time.Second}, {request: time.Second, answer: 7 * time.Second}} {
		onBoth(t, func(t *testing.T, s *server) {
			s.delay(runs, slow)
			s.delay(pings, lag{}, lag{hangs: true})
			lock := mustTry(t, s.newLocker(t), "x")
			mustEndAt(t, lock, func() time.Time { return s.statements(runs)[0].at.Add(trustedFor) })
		})
	}
}

func TestAHeartbeatMovesTheDeadlineByWhenItWasSentHoweverLateItsAnswerIs(t *testing.T) {
	t.Parallel()
	for _, slow := range []lag{{}, {answer: time.Second}, {request: time.Second}, {request: time.Second, answer: 5 * time.Second}} {
		onBoth(t, func(t *testing.T, s *server) {
			s.delay(pings, lag{}, lag{}, slow, lag{hangs: true})
			lock := mustTry(t, s.newLocker(t), "x")
			mustEndAt(t, lock, func() time.Time { return s.statements(pings)[2].at.Add(trustedFor) })
		})
	}
}

func TestASessionWhoseHeartbeatsAreConfirmedLivesOn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		s.delay(pings, lag{answer: time.Second})
		lock := mustTry(t, s.newLocker(t), "x")
		pass(100 * ttl)
		if err := context.Cause(lock.Context()); err != nil {
			t.Error(err)
		}
		if n := len(s.statements(pings)); n < 300 {
			t.Errorf("there were %d heartbeats", n)
		}
	})
}

// A session gives up a statement at its deadline, which counts from when its connection was checked to be fit for
// locks.
func TestANewSessionIsTrustedFromWhenItsConnectionWasAsked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		s.ttl = shortTTL
		s.delay(pings, lag{answer: shortlyTrusted - 2*time.Second}, lag{})
		l := s.newLocker(t)
		mustTry(t, l, "x")
		asked, sent := s.statements(pings)[0], s.statements(runs)[0]
		if deadline := asked.at.Add(shortlyTrusted); !sent.until.Equal(deadline) {
			t.Errorf("a statement may go on for %v after the deadline of its session", sent.until.Sub(deadline))
		}
	})
}

func TestASessionThatWasOpenedTooSlowlyIsNotUsed(t *testing.T) {
	t.Parallel()
	for range rounds {
		onBoth(t, func(t *testing.T, s *server) {
			s.ttl = shortTTL
			s.delay(pings, lag{answer: shortlyTrusted}, lag{})
			lock, err := s.newLocker(t).TryAcquire(t.Context(), want("x"))
			mustNotBeOver(t, lock, err)
			for _, sent := range s.statements(runs) {
				if sent.on == s.statements(pings)[0].on {
					t.Fatal("a session was used that was no longer trusted")
				}
			}
		})
	}
}

// mustNotBeOver checks the result of a request at the moment when the trust in a session ends: a lock on another
// session, or no lock, because the server may not have ended the old session yet.
func mustNotBeOver(t *testing.T, lock sqllock.Lock, err error) {
	t.Helper()
	if errors.Is(err, sqllock.ErrHeld) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // for everything that is due at this moment
	if lock.Context().Err() != nil {
		t.Fatalf("a lock was given that is over: %v", context.Cause(lock.Context()))
	}
}

// I4.
func TestAnAnswerThatComesAtTheDeadlineGivesNoLockOnItsSession(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Second} {
		for range rounds {
			onBoth(t, func(t *testing.T, s *server) {
				s.delay(runs, lag{answer: trustedFor + after}, lag{})
				lock, err := s.newLocker(t).TryAcquire(t.Context(), want("x"))
				mustNotBeOver(t, lock, err)
			})
		}
	}
}

// The statement is sent in time, and its answer is read when the session has ended, as by a process that was stopped. I4.
func TestAnAnswerThatComesAfterTheEndOfItsSessionGivesNoLock(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		before := mustTry(t, l, "kept")
		pass(ttl / 4) // before the next heartbeat
		s.delay(runs, lag{answer: trustedFor - time.Second}, lag{})
		lock, err := l.Acquire(t.Context(), want("x"))
		if before.Context().Err() == nil {
			t.Error("the session has not ended")
		}
		if err != nil {
			t.Fatal(err)
		}
		if lock.Context().Err() != nil {
			t.Fatalf("a lock was given that is over: %v", context.Cause(lock.Context()))
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := mustTry(t, l, "x").Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnAnswerToAWaitThatComesAtTheDeadlineGivesNoLockOnItsSession(t *testing.T) {
	t.Parallel()
	for range rounds {
		onBoth(t, func(t *testing.T, s *server) {
			l, other := s.newLocker(t), s.newLocker(t)
			before := mustTry(t, other, "x")
			time.AfterFunc(time.Minute, func() {
				if err := before.Release(context.Background()); err != nil {
					t.Error(err)
				}
				s.delay(waits, lag{answer: trustedFor}, lag{})
			})
			lock, err := l.Acquire(t.Context(), want("x"))
			mustNotBeOver(t, lock, err)
		})
	}
}

// staller is the context of a caller that stalls when it checks whether it was canceled.
type staller struct {
	context.Context
	armed atomic.Bool
	stall time.Duration
}

func (s *staller) Err() error {
	if s.armed.CompareAndSwap(true, false) {
		pass(s.stall)
	}
	return s.Context.Err()
}

// I45.
func TestALockThatIsHandedOverAtTheDeadlineIsGivenByAnotherSession(t *testing.T) {
	t.Parallel()
	for range rounds {
		onBoth(t, func(t *testing.T, s *server) {
			s.delay(pings, lag{}, lag{hangs: true}, lag{})
			l := s.newLocker(t)
			mustTry(t, l, "kept") // the session's first statement
			pass(8 * time.Second)
			before := mustTry(t, l, "x") // the last statement that is confirmed
			pass(passTime / 2)
			ctx := &staller{Context: t.Context(), stall: trustedFor - passTime/2}
			type outcome struct {
				lock sqllock.Lock
				err  error
			}
			got := make(chan outcome, 1)
			go func() {
				lock, err := l.Acquire(ctx, want("x"))
				got <- outcome{lock, err}
			}()
			synctest.Wait()
			ctx.armed.Store(true)
			if err := before.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			o := <-got
			mustNotBeOver(t, o.lock, o.err)
		})
	}
}

// passTime is shorter than the time in which a handoff needs no statement.
const passTime = 10 * time.Millisecond

// I1.
func TestNobodyHasALockBeforeItsHolderThatIsCutOffWasTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		lock := mustTry(t, s.newLocker(t), "x")
		pass(4*ttl + ttl/7)
		s.cutOff("x")
		told := make(chan time.Time, 1)
		context.AfterFunc(lock.Context(), func() { told <- time.Now() })
		if _, err := s.newLocker(t).Acquire(t.Context(), want("x")); err != nil {
			t.Fatal(err)
		}
		if lock.Context().Err() == nil {
			t.Fatal("two hold the lock")
		}
		if before := time.Since(<-told); before < ttl/6 {
			t.Errorf("the holder was told only %v before", before)
		}
	})
}

// errEnd is the error of a watched connection that has ended.
var errEnd = errors.New("it has ended")

// I42.
func TestAllLocksOfASessionAreToldWhenItsEndIsSeen(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *server) {
		l := s.newLocker(t)
		locks := []sqllock.Lock{mustTry(t, l, "x"), mustTry(t, l, "y")}
		pass(ttl / 10) // long before the next heartbeat
		seen := time.Now()
		s.holder("x").seen <- errEnd
		for _, lock := range locks {
			mustEndAt(t, lock, func() time.Time { return seen })
			if cause := context.Cause(lock.Context()); !errors.Is(cause, errEnd) {
				t.Errorf("the lock ended with: %v", cause)
			}
		}
	})
}

func TestAConnectionInDoubtIsPingedAtOnce(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{true, false} {
		onBoth(t, func(t *testing.T, s *server) {
			lock := mustTry(t, s.newLocker(t), "x")
			pass(ttl / 10) // long before the next heartbeat
			seen, before, c := time.Now(), len(s.statements(pings)), s.holder("x")
			if !lives {
				c.end()
			}
			c.seen <- session.ErrDoubt
			if !lives {
				mustEndAt(t, lock, func() time.Time { return seen })
				return
			}
			synctest.Wait()
			all := s.statements(pings)
			if len(all) != before+1 || !all[before].at.Equal(seen) {
				t.Fatalf("%d pings were sent", len(all)-before)
			}
			if err := context.Cause(lock.Context()); err != nil {
				t.Fatal(err)
			}
			pass(ttl)
			if err := context.Cause(lock.Context()); err != nil {
				t.Errorf("later the lock ended with %v", err)
			}
		})
	}
}

func TestWhatWaitedForASessionThatEndsGoesToAnotherOne(t *testing.T) {
	t.Parallel()
	for range rounds {
		onBoth(t, func(t *testing.T, s *server) {
			l := s.newLocker(t)
			mustTry(t, l, "x")
			s.cutOff("x")
			pass(trustedFor / 2) // a heartbeat gets no response
			var all sync.WaitGroup
			for i := range 90 {
				all.Go(func() {
					if _, err := l.TryAcquire(t.Context(), want(fmt.Sprint(i))); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		})
	}
}
