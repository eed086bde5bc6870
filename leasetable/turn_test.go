package leasetable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

func wanted(t *testing.T, db *sqltest.Database) bool {
	t.Helper()
	return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE waiter_until IS NOT NULL") == 1
}

// acquiring calls Acquire in a goroutine.
func acquiring(l *leasetable.Locker, name string) <-chan *leasetable.Lease {
	got := make(chan *leasetable.Lease, 1)
	go func() {
		lock, err := l.Acquire(context.Background(), name)
		if err != nil {
			lock = nil
		}
		got <- lock
	}()
	return got
}

// releaseNext waits until a waiter has the lock, and releases it.
func releaseNext(t *testing.T, next <-chan *leasetable.Lease) {
	t.Helper()
	release(t, mustGet(t, next))
}

// Who acquires a name with its turn keeps the turn until the release, and then the server wakes the next one. I36.
func TestATurnGoesWithTheName(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lockers := []*leasetable.Locker{newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB, leasetable.WithTTL(time.Hour))}
		held := take(t, lockers[1], "x")
		first := acquiring(lockers[0], "x")
		eventually(t, func() bool { return leasetable.HasTurn(lockers[0], "x") })
		release(t, held)
		held = mustGet(t, first)
		if !leasetable.HasTurn(lockers[0], "x") {
			t.Error("the holder, who has waited for the name, has given its turn back")
		}
		for i := range 10 {
			waits := lockers[(i+1)%2]
			next := acquiring(waits, "x")
			eventually(t, func() bool { return leasetable.Waits(waits, "x") })
			release(t, held)
			held = mustGet(t, next)
		}
		release(t, held)
		for _, l := range lockers {
			eventually(t, func() bool { return !leasetable.HasTurn(l, "x") })
		}
	})
}

// The turn of a name that is held for long is given back, and with it a connection. I36.
func TestWhoHoldsANameForLongGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		a, b, c := newLocker(t, db.DB), newLocker(t, db.DB), newLocker(t, db.DB)
		held := take(t, a, "x")
		next := acquiring(b, "x")
		eventually(t, func() bool { return leasetable.HasTurn(b, "x") })
		release(t, held)
		held = mustGet(t, next)
		last := acquiring(c, "x")
		eventually(t, func() bool { return leasetable.HasTurn(c, "x") })
		release(t, held)
		releaseNext(t, last)
	})
}

// A Locker that may have one turn at a time waits for one name after the other, and holds them all.
func TestANameThatIsHeldForLongKeepsNoOtherFromTheQueue(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB, leasetable.WithMaxConnections(3))
		for _, name := range []string{"x", "y"} {
			held := take(t, a, name)
			next := acquiring(b, name)
			eventually(t, func() bool { return leasetable.HasTurn(b, name) })
			release(t, held)
			lock := mustGet(t, next)
			defer release(t, lock)
		}
	})
}

// The context of who has the turn ends. I36.
func TestAWaiterThatLeavesGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		a, b, c := newLocker(t, db.DB), newLocker(t, db.DB), newLocker(t, db.DB)
		held := take(t, a, "x")
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		left := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, "x")
			left <- err
		}()
		eventually(t, func() bool { return leasetable.HasTurn(b, "x") })
		next := acquiring(c, "x")
		eventually(t, func() bool { return leasetable.Waits(c, "x") })
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the waiter says: %v", err)
		}
		eventually(t, func() bool { return leasetable.HasTurn(c, "x") })
		release(t, held)
		releaseNext(t, next)
	})
}

// The server gives a waiter its turn, and the answer is lost with the connection. The waiter gets the name all the same, and
// the turn is not lost. I36.
func TestATurnWhoseAnswerIsLostKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, b := newLockerThrough(t, db)
		a, c := newLocker(t, db.DB), newLocker(t, db.DB)
		held := take(t, a, "x")
		p.loseAnswerTo(map[bool]string{true: "pg_try_advisory_lock", false: "GET_LOCK"}[db.Engine == sqltest.EnginePostgres])
		var waiters sync.WaitGroup
		acquire := func(l *leasetable.Locker) {
			waiters.Go(func() {
				if err := sqllock.Do(t.Context(), l, "x", func(context.Context) error { return nil }); err != nil {
					t.Errorf("a waiter: %v", err)
				}
			})
		}
		acquire(b)
		eventually(t, func() bool { return p.answersLost() == 1 })
		acquire(c)
		eventually(t, func() bool { return leasetable.HasTurn(b, "x") || leasetable.HasTurn(c, "x") })
		release(t, held)
		waiters.Wait()
	})
}

// I35.
func TestANameThatIsFreedByHandIsFound(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, a, "x")
		next := acquiring(b, "x")
		eventually(t, func() bool { return wanted(t, db) })
		run(t, db, "UPDATE sqllock_lock SET lease_id = NULL WHERE lease_id IS NOT NULL")
		releaseNext(t, next)
		_ = lease.Release(t.Context()) // it was lost
	})
}

// The goroutine that waits next may have the turn by then.
func TestTheReleaseOfALostLockLeavesTheTurnOfNobodyElse(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		lost := take(t, l, "x")
		run(t, db, "UPDATE sqllock_lock SET lease_id = NULL, token = token + 1 WHERE lease_id IS NOT NULL")
		if err := lost.Verify(t.Context()); err == nil {
			t.Fatal("it is not lost")
		}
		held := take(t, other, "x")
		next := acquiring(l, "x")
		eventually(t, func() bool { return leasetable.HasTurn(l, "x") })
		if err := lost.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		if !leasetable.HasTurn(l, "x") {
			t.Error("the turn was given back")
		}
		release(t, held)
		releaseNext(t, next)
	})
}

// withTurns returns a client of the server, with these sessions in the queue.
func withTurns(server *memory.Server, of func(store.Turn) store.Turn) *scripted {
	s := &scripted{Store: server.Store()}
	s.turn = func(ctx context.Context) (store.Turn, error) {
		opened, err := s.Store.OpenTurn(ctx)
		return of(opened), err
	}
	return s
}

// A waiter that leaves lets its slice go on. The next one gets the turn from that slice.
func TestASliceOfWhoHasLeftIsForTheNext(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		a, b, l := keep(t, server.Store(), leasetable.WithTTL(time.Hour)), keep(t, server.Store(), leasetable.WithTTL(time.Hour)), keep(t, server.Store(), leasetable.WithTTL(time.Hour))
		held := take(t, a, "x")
		head := acquiring(b, "x")
		synctest.Wait()
		leave := waitingForX(t, l)
		pass(50 * time.Millisecond) // it stands behind the head
		leave()
		next := acquiring(l, "x")
		synctest.Wait()
		release(t, held)
		releaseNext(t, head)
		before := time.Now()
		lock := mustGet(t, next)
		if !leasetable.HasTurn(l, "x") || time.Since(before) > 100*time.Millisecond {
			t.Errorf("the name came after %v, with its turn: %t", time.Since(before), leasetable.HasTurn(l, "x"))
		}
		release(t, lock)
	})
}

// lateTurn is a session whose wait ends late, with the turn.
type lateTurn struct {
	store.Turn

	late time.Duration
}

func (lateTurn) Try(context.Context, string) (bool, error) { return false, nil }

func (t lateTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	pass(t.late)
	return t.Turn.Wait(ctx, name, d)
}

// A process that has left a name to another one does not say an hour later that it is held.
func TestAnOldYieldIsNoReasonToSayThatTheNameIsHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.SQLite)
		s := &scripted{Store: server.Store()}
		l := keep(t, s)
		held := take(t, l, "x")
		next := acquiring(keep(t, server.Store()), "x")
		pass(time.Second) // it has said that it waits
		release(t, held)
		release(t, mustGet(t, next))
		pass(time.Hour)
		s.read = func(ctx context.Context, _ string) (store.State, error) {
			<-ctx.Done()
			return store.State{}, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if lock, err := l.Acquire(ctx, "x"); err == nil || errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a server that does not answer: %v, %v", lock, err)
		}
	})
}

// brokenTurn is a session that stands for x and breaks.
type brokenTurn struct{ store.Turn }

func (t brokenTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	if name == "x" {
		return false, errCut
	}
	return t.Turn.Wait(ctx, name, d)
}

// A Locker that may have one turn at a time has that of another name when it no longer wants one whose session broke.
func TestATurnWhoseSessionBrokeKeepsNoOtherNameFromTheQueue(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		other := keep(t, server.Store(), leasetable.WithTTL(time.Hour))
		take(t, other, "x")
		take(t, other, "y")
		session, err := server.Store().OpenTurn(t.Context()) // of another process that waits for x
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if _, err := session.Try(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		one := withTurns(server, func(t store.Turn) store.Turn { return brokenTurn{t} })
		one.maxTurns = 1
		l := keep(t, one, leasetable.WithTTL(time.Hour))
		leave := waitingForX(t, l)
		pass(10 * time.Second)
		leave()
		pass(10 * time.Second)
		next := acquiring(l, "y")
		pass(10 * time.Second)
		if !leasetable.HasTurn(l, "y") {
			t.Error("the waiter for y does not stand in the queue")
		}
		_, _ = other.ForceRelease(t.Context(), "y") // y is free, whatever is answered
		release(t, mustGet(t, next))
	})
}

// A waiter whose queue is late finds the name free by a look. What the queue grants later is for the next. I36.
func TestWhoAcquiresWithoutItsTurnWantsNone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		held := take(t, keep(t, server.Store(), leasetable.WithTTL(time.Hour)), "x")
		late := withTurns(server, func(t store.Turn) store.Turn { return lateTurn{t, 8 * time.Second} })
		l := keep(t, late, leasetable.WithTTL(time.Hour))
		next := acquiring(l, "x")
		pass(5 * time.Second)
		release(t, held)
		lock := mustGet(t, next)
		pass(4 * time.Second) // the turn is granted meanwhile
		session, err := server.Store().OpenTurn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if free, err := session.Try(t.Context(), "x"); err != nil || !free || leasetable.HasTurn(l, "x") {
			t.Errorf("the turn is free: %t, %v", free, err)
		}
		release(t, lock)
	})
}

// The holder is gone, and so is the head. The lease ends with the slice of a waiter, which does not stand for another one
// before it looks at the row. I36.
func TestAWaiterLooksWhenTheLeaseEnds(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		const ttl = 1400 * time.Millisecond // less than a slice
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store(), renew: func(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }}
		began := time.Now()
		lost := take(t, keep(t, s, leasetable.WithTTL(ttl)), "x")
		head, err := s.OpenTurn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer head.Close()
		if ours, err := head.Try(t.Context(), "x"); err != nil || !ours {
			t.Fatal(ours, err)
		}
		lock := take(t, keep(t, server.Store(), leasetable.WithTTL(time.Hour)), "x")
		if after := time.Since(began) - ttl; after > 100*time.Millisecond {
			t.Errorf("%v after the end of the lease", after)
		}
		if err := lost.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of the lost lock: %v", err)
		}
		release(t, lock)
	})
}
