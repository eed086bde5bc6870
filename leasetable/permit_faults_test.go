package leasetable_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// expire makes the lease of a permit expire.
func expire(t *testing.T, db *sqltest.Database, lease *leasetable.Lease) {
	t.Helper()
	run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+
		" WHERE id = (SELECT lease_id FROM sqllock_permit WHERE name = ? AND token = ?)", []byte(lease.Name()), lease.Token())
}

// The holder does not know yet that its lease has expired.
func TestAForcedReleaseEndsThePermitsOfDeadHolders(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		lock := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x", leasetable.WithShared())
		expire(t, db, lock)
		admin := newLocker(t, db.DB)
		if _, err := admin.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 0 {
			t.Errorf("%d permits are left", n)
		}
		if after, err := admin.Inspect(t.Context(), "x"); err != nil || after.Token <= lock.Token() {
			t.Errorf("afterwards: %+v, %v", after, err)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // nothing was written
		if err := lock.Guard(t.Context(), leasetable.SQLTx(tx)); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Guard of the dead holder: %v", err)
		}
	})
}

// The clock of the server was set back since an exclusive waiter, which is gone, was noted.
func TestAnExclusiveWaiterKeepsOthersOutForSecondsOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		shared := leasetable.WithShared()
		take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x", shared)
		run(t, db, "UPDATE sqllock_lock SET exclusive_waiter_until = (SELECT expires_at FROM sqllock_lease)")
		locktest.MustTry(t, newLocker(t, db.DB), "x", shared)
	})
}

// I33.
func TestThePermitOfADeadHolderIsTakenOverAndNoOther(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b, c := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB), newLocker(t, db.DB)
		two := leasetable.WithLimit(2)
		dead, live := take(t, a, "x", two), take(t, b, "x", two)
		if _, err := tryPermit(t, c, two); !errors.Is(err, sqllock.ErrHeld) {
			t.Fatal(err)
		}
		expire(t, db, dead)
		next := locktest.MustTry(t, c, "x", two)
		mustRise(t, dead, live, next)
		if _, err := tryPermit(t, newLocker(t, db.DB), two); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a second takeover: %v", err)
		}
		mustVerify(t, live)
		mustVerify(t, next)
		if err := dead.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Verify of the dead one: %v", err)
		}
		if err := dead.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of the dead one: %v", err)
		}
		release(t, live, next)

		// An exclusive waiter also takes over from dead holders, whose permits are then deleted.
		dead = take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x", leasetable.WithShared())
		expire(t, db, dead)
		alone := locktest.MustTry(t, c, "x")
		mustRise(t, dead, alone)
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 0 {
			t.Errorf("%d permits are left", n)
		}
		// The reverse.
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+" WHERE id = (SELECT lease_id FROM sqllock_lock)")
		shared := locktest.MustTry(t, newLocker(t, db.DB), "x", leasetable.WithShared())
		mustRise(t, alone, shared)
		if err := alone.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Verify of a dead one: %v", err)
		}
	})
}

func TestDeadPermitsOfAnotherLimitAreFollowedByAll(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		for range 3 {
			take(t, a, "x", leasetable.WithShared())
		}
		run(t, db, "DELETE FROM sqllock_lease")
		b := newLocker(t, db.DB)
		locktest.MustTry(t, b, "x", leasetable.WithLimit(1))
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 1 {
			t.Errorf("%d permits", n)
		}
	})
}

// A name that is always shared does not accumulate the permits of dead holders.
func TestDeadPermitsThatAreInNobodysWayAreCleared(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		for range 3 {
			dead := newLocker(t, db.DB)
			take(t, dead, "x", leasetable.WithShared())
			if err := dead.Close(); err != nil {
				t.Fatal(err)
			}
		}
		l := newLocker(t, db.DB)
		take(t, l, "x", leasetable.WithShared())
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_permit") == 1 })
	})
}

func TestAClockThatWasSetBackDoesNotKeepADeadPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const ttl = 1500 * time.Millisecond
		dead := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x", leasetable.WithLimit(1))
		run(t, db, "UPDATE sqllock_lease SET ttl_us = 1500000") // long before it is renewed
		for _, opts := range [][]sqllock.Option{{leasetable.WithLimit(1)}, nil} {
			began := time.Now()
			next := take(t, newLocker(t, db.DB), "x", opts...)
			if time.Since(began) < ttl {
				t.Errorf("it was followed after %v", time.Since(began))
			}
			mustRise(t, dead, next)
			release(t, next)
			dead = take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x", leasetable.WithLimit(1))
			run(t, db, "UPDATE sqllock_lease SET ttl_us = 1500000 WHERE ttl_us = 3600000000")
		}
	})
}

// I33.
func TestATakeoverOfAPermitWaitsForAGuardedTransaction(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		if db.Engine == sqltest.EngineSQLite {
			t.Skip("readers of a SQLite file pin nothing")
		}
		for what, opts := range map[string][]sqllock.Option{"a permit": {leasetable.WithLimit(2)}, "alone": nil} {
			a, b, c := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB), newLocker(t, db.DB)
			two := leasetable.WithLimit(2)
			dead := take(t, a, t.Name(), two)
			tx := begin(t)
			if err := dead.Guard(t.Context(), tx.Tx); err != nil {
				t.Fatal(err)
			}
			other, err := b.TryAcquire(t.Context(), t.Name(), two) // other holders come and go meanwhile
			if err != nil {
				t.Fatal(err)
			}
			if opts == nil {
				if err := other.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			expire(t, db, dead)
			if _, err := c.TryAcquire(t.Context(), t.Name(), opts...); !errors.Is(err, sqllock.ErrHeld) {
				t.Fatalf("%s was taken over while a transaction was guarded: %v", what, err)
			}
			taken := make(chan *leasetable.Lease, 1)
			go func() {
				lock, err := c.Acquire(context.Background(), t.Name(), opts...)
				if err != nil {
					t.Error(err)
				}
				taken <- lock
			}()
			if err := tx.exec(write); err != nil {
				t.Fatal(err)
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
			lock := <-taken
			if lock == nil {
				return
			}
			mustRise(t, dead, lock)
			if err := errors.Join(lock.Release(t.Context()), other.Release(t.Context())); err != nil {
				t.Error(err)
			}
		}
	})
}

// I13.
func TestAStaleHolderOfAPermitWritesNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		before := count(t, db, "SELECT count(*) FROM written")
		one := leasetable.WithLimit(1)
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		stale := take(t, a, t.Name(), one)
		early := begin(t) // its snapshot is older than the takeover
		if err := early.exec("SELECT count(*) FROM sqllock_permit"); err != nil {
			t.Fatal(err)
		}
		if db.Engine == sqltest.EngineSQLite {
			if err := stale.Guard(t.Context(), early.Tx); err != nil { // the snapshot is still valid
				t.Fatal(err)
			}
		}
		expire(t, db, stale)
		fresh := take(t, b, t.Name(), one)
		err := stale.Guard(t.Context(), early.Tx)
		if err == nil {
			err = errors.Join(early.exec(write), early.commit())
		}
		if err == nil {
			t.Error("a stale holder wrote")
		}
		early.rollback()
		late := begin(t)
		if err := stale.Guard(t.Context(), late.Tx); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Guard of a stale holder: %v", err)
		}
		late.rollback()

		tx := begin(t)
		if err := fresh.Guard(t.Context(), tx.Tx); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tx.exec(write), tx.commit()); err != nil {
			t.Fatal(err)
		}
		release(t, fresh)
		if n := count(t, db, "SELECT count(*) FROM written") - before; n != 1 {
			t.Errorf("%d rows were written", n)
		}
	})
}

// Both have read the state, and wait for the lock row. For one of them the state is then outdated. I8, I29.
func TestOfTwoWhoSawTheSameRoomOneHasIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		one := []sqllock.Option{leasetable.WithLimit(1)}
		for _, pair := range [][2][]sqllock.Option{{one, one}, {one, nil}, {nil, nil}} {
			a, b := newLocker(t, db.DB), newLocker(t, db.DB)
			release(t, take(t, a, "x", leasetable.WithShared()), take(t, b, "x", leasetable.WithShared()))
			unpin := pin(t, db, "x")
			type result struct {
				lease *leasetable.Lease
				err   error
			}
			got := make(chan result, 2)
			for i, l := range []*leasetable.Locker{a, b} {
				go func() {
					lease, err := tryUntilAnswered(t.Context(), l, pair[i]...)
					got <- result{lease, err}
				}()
			}
			eventually(t, func() bool { return waitForRow(t, db) == 2 })
			unpin()
			first, second := <-got, <-got
			if first.lease == nil {
				first, second = second, first
			}
			if first.lease == nil || second.lease != nil || !errors.Is(second.err, sqllock.ErrHeld) {
				t.Fatalf("%v and %v; want that one has it and one is told so", first, second)
			}
			release(t, first.lease)
		}
	})
}

// waitForRow returns how many statements in the test's database wait for a row; see waitsForRow.
func waitForRow(t *testing.T, db *sqltest.Database) int {
	t.Helper()
	if !waitsForRow(t, db) {
		return 0
	}
	if db.Engine == sqltest.EnginePostgres {
		return count(t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
	}
	return count(t, db, "SELECT count(*) FROM "+processes+
		" WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND IN ('Execute', 'Query')")
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
