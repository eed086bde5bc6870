package leasetable_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// line makes this many goroutines wait in the queue for a held name, one after the other.
func line(t *testing.T, l *leasetable.Locker, name string, waiters int) <-chan *leasetable.Lease {
	t.Helper()
	got := make(chan *leasetable.Lease, waiters)
	for n := range waiters {
		go func() {
			lock, err := l.Acquire(context.Background(), name)
			if err != nil {
				t.Error(err)
				got <- nil
				return
			}
			got <- lock
		}()
		eventually(t, func() bool { return leasetable.Waiting(l, name) == n+1 })
	}
	return got
}

// I12, I24.
func TestANamePassesFromOneWaiterToTheNextWithAHigherToken(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		other := newLocker(t, db.DB)
		lease := take(t, l, "x")
		const waiters = 10
		next := line(t, l, "x", waiters)
		for range waiters {
			before := lease
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease = mustGet(t, next)
			token := lease.Token()
			if token <= before.Token() || before.Context().Err() == nil || lease.Context().Err() != nil {
				t.Errorf("token %d after %d", token, before.Token())
			}
			if h := mustBeHeld(t, other, "x"); h.Token < token {
				t.Errorf("others see token %d; the lock has %d", h.Token, token)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if token := take(t, other, "x").Token(); token <= lease.Token() {
			t.Errorf("at last the token is %d", token)
		}
	})
}

func TestWhoWaitsWithAnotherTTLGetsALeaseOfThat(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "x")
		next := make(chan *leasetable.Lease, 1)
		go func() {
			lock, err := l.Acquire(context.Background(), "x", sqllock.WithTTL(3*time.Hour))
			if err != nil {
				t.Error(err)
			}
			next <- lock
		}()
		eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
		release(t, lease)
		lease = mustGet(t, next)
		if left := lease.Remaining(); left < 2*time.Hour || lease.Token() < 2 {
			t.Errorf("a lock for 3 h, with token %d, has %v left", lease.Token(), left)
		}
		release(t, lease)
	})
}

// I18.
func TestAHandoverWhoseAnswerIsLostHoldsNothingUp(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "unanswered")
		leaseOf := func() (id []byte) {
			if err := db.GetContext(t.Context(), &id, "SELECT lease_id FROM sqllock_lock"); err != nil {
				t.Fatal(err)
			}
			return id
		}
		before := leaseOf()
		next := line(t, l, "unanswered", 2)
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		if err := lease.Release(t.Context()); err != nil || p.answersLost() != 1 {
			t.Errorf("Release: %v; %d answers lost", err, p.answersLost())
		}
		token := lease.Token()
		for range 2 {
			lease = mustGet(t, next)
			if lease.Token() <= token {
				t.Errorf("token %d after %d", lease.Token(), token)
			}
			if bytes.Equal(leaseOf(), before) { // the operation that is still running may release that lease
				t.Error("the next holder has the name by the same lease")
			}
			token = lease.Token()
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		eventually(t, func() bool { return leaseRows(t, db) == 1 }) // the previous lease ends, because nothing uses it
		take(t, newLocker(t, db.DB), "unanswered")
	})
}

func TestANameIsNotPassedOnToWhoHasLeft(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		for range 50 {
			lease := take(t, l, "x")
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				lock, err := l.Acquire(ctx, "x")
				if err == nil {
					err = lock.Release(context.Background())
				}
				done <- err
			}()
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
			go cancel()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		take(t, newLocker(t, db.DB), "x")
	})
}

// I24.
func TestANameOfALostLeaseIsNotPassedOn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, admin := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		lease := take(t, l, "x")
		next := line(t, l, "x", 1)
		if _, err := admin.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		between := take(t, admin, "x")
		if err := lease.Release(t.Context()); err == nil {
			t.Error("a lock that somebody else took was released")
		}
		select {
		case <-next:
			t.Fatal("two hold the lock")
		default:
		}
		if err := between.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := mustGet(t, next); got.Token() <= between.Token() {
			t.Errorf("token %d after %d", got.Token(), between.Token())
		}
	})
}

// Even if goroutines of one process keep handing a name off to each other, another process acquires it, too. I25.
func TestANameIsNotPassedOnForEver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		ctx, cancel := context.WithCancel(t.Context())
		var busy sync.WaitGroup
		var holds atomic.Int64
		for range 8 {
			busy.Go(func() {
				for ctx.Err() == nil {
					err := sqllock.Do(ctx, l, "x", func(context.Context) error { holds.Add(1); return nil })
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		since := func() int { return count(t, db, "SELECT coalesce(max(waiter_since), 0) FROM sqllock_lock") }
		for range 3 {
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == 7 })
			was := since()
			lock := acquiring(other, "x")
			eventually(t, func() bool { return since() > was || len(lock) > 0 })
			before := holds.Load()
			lease := mustGet(t, lock)
			if n := holds.Load() - before; n > 3000 {
				t.Errorf("it was held %d times before another process had it", n)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		busy.Wait()
	})
}
