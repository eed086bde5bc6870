package leasetable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
)

// A holder learns of the loss before another client can acquire its lock: 5/6 of the TTL after it sent the last
// statement that the database confirmed, however late the response came. In virtual time this is exact.

const (
	virtualTTL = 30 * time.Second
	trustedFor = 25 * time.Second // 5/6 of virtualTTL
)

// rounds is how often a test repeats a race of two timers that are due at the same time, because they fire in any
// order.
const rounds = 50

// mustEndWith waits for the end of a lock. It must come exactly trustedFor after a statement was sent: among the
// statements that contain word, the one with index before.
func (s *lags) mustEndWith(t *testing.T, lock sqllock.Lock, word string, before int) {
	t.Helper()
	select {
	case <-lock.Context().Done():
	case <-time.After(10 * virtualTTL):
		t.Fatal("the lock did not end")
	}
	if late := time.Since(s.sentAt(t, word, before).Add(trustedFor)); late != 0 {
		t.Errorf("the lock ended %v after its deadline", late)
	}
	if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrExpired) {
		t.Errorf("the lock ended with: %v", cause)
	}
}

func TestALockEndsASixthOfTheTTLBeforeItsLeaseCountedFromWhenThatWasAskedFor(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, slow := range []lag{
		{},
		{answer: 2 * time.Second},
		{request: 2 * time.Second},
		{request: time.Second, answer: time.Second},
		{answer: 24 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
			db.delay(granting, slow)
			db.delay(renewing, lag{lost: true})
			db.mustEndWith(t, take(t, l, "x"), granting, 0)
		})
	}
}

// I3.
func TestARenewalMovesTheDeadlineByWhenItWasSentHoweverLateItsAnswerIs(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, slow := range []lag{{}, {answer: time.Second}, {request: time.Second}, {request: 500 * time.Millisecond, answer: 2 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
			db.delay(renewing, lag{}, slow, lag{lost: true})
			lock := take(t, l, "x")
			db.mustEndWith(t, lock, renewing, 1)
			if db.count(renewing) < 4 {
				t.Error("a renewal that was lost was not repeated")
			}
		})
	}
}

func TestARenewalThatItsHolderAsksForMovesTheDeadlineByWhenItWasSent(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
		db.delay(renewing, lag{answer: 2 * time.Second}, lag{lost: true})
		lock := take(t, l, "x")
		pass(3 * time.Second)
		if err := lock.Renew(t.Context()); err != nil {
			t.Fatal(err)
		}
		if left := lock.Remaining(); left != trustedFor-2*time.Second {
			t.Errorf("after a renewal that took 2 s the lock is sure to last for %v", left)
		}
		db.mustEndWith(t, lock, renewing, 0)
	})
}

// Renewals call the hook, so it must not be called for each attempt during an outage.
func TestRenewalsThatFailAreToldOnceInAWhile(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var failed []time.Time
		hook := leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.RenewalFailed {
				failed = append(failed, time.Now())
			}
		})
		db, l := newLagging(t, leasetable.WithTTL(virtualTTL), hook)
		db.delay(renewing, lag{}, lag{lost: true})
		lock := take(t, l, "x")
		<-lock.Context().Done()
		if n := len(failed); n == 0 || n > 6 {
			t.Errorf("renewals failed for 15 s, and that was told %d times: %v", n, failed)
		}
		for i := 1; i < len(failed); i++ {
			if failed[i].Sub(failed[i-1]) < 3*time.Second {
				t.Errorf("told after %v again", failed[i].Sub(failed[i-1]))
			}
		}
	})
}

func TestAnErrorIsNoNewsOfALease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
		lock := take(t, l, "x")
		db.delay(renewing, lag{lost: true}, lag{lost: true}, lag{lost: true}, lag{})
		pass(10 * virtualTTL)
		if err := lock.Context().Err(); err != nil {
			t.Errorf("renewals went on, and the lock ended with: %v", context.Cause(lock.Context()))
		}
	})
}

// Reconnecting takes nearly all the time that is left after the first renewal whose response is late.
func TestAConnectionForTheNextRenewalIsOpenedWhenAnAnswerIsLate(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
		lock := take(t, l, "x")
		db.connectIn(trustedFor - 10*time.Second - 2800*time.Millisecond)
		db.delay(renewing, lag{lost: true}, lag{})
		pass(2 * trustedFor)
		if err := lock.Context().Err(); err != nil {
			t.Errorf("the lock ended with: %v", context.Cause(lock.Context()))
		}
		if n := db.count(renewing); n < 3 {
			t.Errorf("%d renewals", n)
		}
	})
}

func TestALeaseThatEndedBecauseConnectingTookTooLongSaysSo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
		db.connectIn(14 * time.Second)
		lock := take(t, l, "x")
		db.delay(renewing, lag{lost: true})
		err := await(t, lock)
		if !errors.Is(err, sqllock.ErrExpired) || !strings.Contains(err.Error(), "a TTL of 42s would do") {
			t.Errorf("the lock ended with: %v", err)
		}
	})
}

// mustNotBeOver checks the result of a claim whose response came when the lease was over for its holder: no lock, or a
// lock on another lease.
func mustNotBeOver(t *testing.T, lock *leasetable.Lease, err error) {
	t.Helper()
	synctest.Wait() // for everything that is due at this moment
	if err == nil && lock.Context().Err() != nil {
		t.Fatalf("a lock was given that is over: %v", context.Cause(lock.Context()))
	}
	if err != nil && (!sqllock.IsRetryable(err) || errors.Is(err, sqllock.ErrExpired)) { // a caller without a lock has lost none
		t.Fatalf("no lock was given: %v; it should be retryable", err)
	}
}

// I4.
func TestAnAnswerThatComesAtTheDeadlineGivesNoLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, after := range []time.Duration{0, time.Second} {
		for range rounds {
			synctest.Test(t, func(t *testing.T) {
				db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
				db.delay(renewing, lag{lost: true})
				take(t, l, "x")
				pass(trustedFor - time.Second)
				db.delay(taking, lag{answer: time.Second + after})
				lock, err := l.TryAcquire(t.Context(), "y")
				if got := time.Since(db.sentAt(t, granting, 0)); got < trustedFor+after {
					t.Fatalf("the answer came after %v", got)
				}
				mustNotBeOver(t, lock, err)
			})
		}
	}
}

func TestALeaseThatIsAnsweredAtItsDeadlineGivesNoLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
			db.delay(granting, lag{answer: trustedFor}, lag{})
			lock, err := l.TryAcquire(t.Context(), "x")
			mustNotBeOver(t, lock, err)
			if err != nil { // the next attempt is not delayed
				lock, err = l.TryAcquire(t.Context(), "y")
				mustNotBeOver(t, lock, err)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoClaimBeginsOnALeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
			db.delay(renewing, lag{lost: true})
			take(t, l, "x")
			pass(trustedFor)
			lock, err := l.TryAcquire(t.Context(), "y") // on another lease
			if err != nil {
				t.Fatal(err)
			}
			mustNotBeOver(t, lock, err)
		})
	}
}

// I4.
func TestNoLockMovesToALeaseAtItsDeadline(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			db, l := newLagging(t, leasetable.WithTTL(virtualTTL))
			db.delay(renewing, lag{lost: true})
			short := take(t, l, "x")
			long := take(t, l, "y", sqllock.WithTTL(2*virtualTTL))
			pass(trustedFor)
			if leasetable.Join(long, short) == nil {
				t.Fatal("a lock joined those of a lease that was over")
			}
			synctest.Wait()
			if err := long.Context().Err(); err != nil {
				t.Error(err)
			}
		})
	}
}
