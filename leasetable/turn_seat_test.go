package leasetable_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
)

// A queue of PostgreSQL has as many waiters as seats at most, after their first second: the server looks for a deadlock in a
// time that grows with the cube of their number. Who sleeps instead still looks at the row. I35.
func TestAWaiterWithoutASeatSleepsAndLooksAtTheRow(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := tables.Postgres(t)
	ask := func(text string) int {
		return count(t, db, text+" AND datname = current_database()")
	}
	const locks = " FROM pg_locks JOIN pg_database d ON database = d.oid WHERE locktype = 'advisory'"
	held := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
	near := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	head := acquiring(near, "x")
	eventually(t, func() bool { return leasetable.HasTurn(near, "x") })
	leave := locktest.TakeSeats(t, db.DB.DB, int64(ask("SELECT classid::bigint << 32 | objid::bigint"+locks)))
	defer leave()

	next := acquiring(newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
	eventually(t, func() bool {
		return ask("SELECT count(*) FROM pg_stat_activity WHERE state = 'idle' AND query LIKE '%LIMIT 1)%'") == 1
	})
	if n := ask("SELECT count(*)" + locks + " AND NOT granted"); n != 0 {
		t.Errorf("%d stand in the queue", n)
	}
	release(t, held)
	releaseNext(t, head)
	releaseNext(t, next)
}
