package mysql_test

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestLocksThatWereFreeShareOneConnection(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db)
		if n := sessionsOn(t, db); n != 0 {
			t.Fatalf("%d connections before the first lock", n)
		}
		var locks []sqllock.Lock
		for i := range 50 {
			locks = append(locks, mustTry(t, l, fmt.Sprint("lock ", i)))
		}
		if n := sessionsOn(t, db); n != 1 {
			t.Errorf("%d connections for 50 locks that were free", n)
		}
		for _, lock := range locks {
			mustRelease(t, lock)
		}
	})
}

func TestAWaitHasAConnectionUntilItsLockIsReleased(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		holder, l := newLocker(t, db), newLocker(t, db)
		lock, other := mustTry(t, holder, "a"), mustTry(t, l, "other")
		ctx, cancel := bounded(t)
		defer cancel()
		waiting := waitFor(ctx, t, db, l, "a")
		if n := sessionsOn(t, db); n != 3 {
			t.Errorf("%d connections; want one for the holder's locks, one for the waiter's, one for its wait", n)
		}
		mustRelease(t, lock)
		out := <-waiting
		if out.err != nil {
			t.Fatal(out.err)
		}
		mustRelease(t, out.lock)
		eventually(t, "the wait's connection is closed", func() bool { return sessionsOn(t, db) == 2 })
		mustLive(t, other)
		mustRelease(t, other)
	})
}

func TestAPoolOfOneKeepsWorkingWhileLocksAreHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		small, err := sql.Open("mysql", db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		defer small.Close()
		small.SetMaxOpenConns(1)
		l := closing(t)(mysql.FromDB(small))
		lock, own := mustTry(t, newLocker(t, db), "a"), mustTry(t, l, "own")
		ctx, cancel := bounded(t)
		defer cancel()
		waiting := waitFor(ctx, t, db, l, "a")
		for range 10 {
			var one int
			if err := small.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
				t.Fatal(err)
			}
		}
		mustRelease(t, own) // the wait does not stand in the way of a release either
		mustRelease(t, lock)
		out := <-waiting
		if out.err != nil {
			t.Fatal(out.err)
		}
		mustRelease(t, out.lock)
		if n := small.Stats().OpenConnections; n > 1 {
			t.Errorf("the pool has %d connections", n)
		}
	})
}

func TestTheHolderIsKnown(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l, other := newLocker(t, db, mysql.WithOwner("a,b:c")), newLocker(t, db)
		lock := mustTry(t, l, "a")
		_, err := other.TryAcquire(t.Context(), "a")
		var held *sqllock.HeldError
		if !errors.As(err, &held) {
			t.Fatal(err)
		}
		if h := held.Holder; h.Session != int64(holderOf(t, db, "a")) || h.Address == "" {
			t.Errorf("the holder is %+v", h)
		}
		seen, isHeld, err := other.Inspect(t.Context(), "a")
		if err != nil || !isHeld || seen.Session != held.Holder.Session || seen.Address != held.Holder.Address {
			t.Errorf("Inspect = %+v, %t, %v; the failed try said %+v", seen, isHeld, err, held.Holder)
		}
		mustRelease(t, lock)
		if _, isHeld, err := other.Inspect(t.Context(), "a"); err != nil || isHeld {
			t.Errorf("Inspect of a free lock: %t, %v", isHeld, err)
		}
	})
}

func TestConnectionsHaveTheOwnersName(t *testing.T) {
	t.Parallel()
	db := sqltest.MySQL(t) // MariaDB shows attributes only with performance_schema
	mustRelease(t, mustTry(t, newLocker(t, db, mysql.WithOwner("billing,a:b")), "a"))
	if n := ask[int](t, db, `SELECT COUNT(*) FROM performance_schema.session_connect_attrs
		WHERE ATTR_NAME = 'program_name' AND ATTR_VALUE = 'sqllock/billing a b'`); n != 1 {
		t.Errorf("%d connections have the owner's name", n)
	}
}

// GET_LOCK's names are the whole server's.
func TestALockOfAnotherDatabaseIsAnotherLock(t *testing.T) {
	t.Parallel()
	for _, open := range []func(sqltest.TB) *sqltest.Database{sqltest.MySQL, sqltest.MariaDB} {
		one, two := newLocker(t, open(t)), newLocker(t, open(t))
		first := mustTry(t, one, "a")
		mustBeHeld(t, one, "a")
		mustRelease(t, mustTry(t, two, "a"))
		mustRelease(t, first)
	}
}
