package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A queue of PostgreSQL has as many waiters as seats at most, after their first seconds: the server looks for a deadlock in
// a time that grows with the cube of their number. I47.
func TestALongWaitSleepsWithoutASeatAndStandsWithOne(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	lister := newLocker(t, db)
	mustListOne := func() {
		t.Helper()
		if infos, err := lister.List(t.Context()); err != nil || len(infos) != 1 || infos[0].Key != pg.Key("it") {
			t.Errorf("List = %+v, %v", infos, err)
		}
	}
	for _, shared := range []bool{false, true} {
		lock := mustTry(t, newLocker(t, db), "it")
		leave := locktest.TakeSeats(t, db.DB.DB, pg.Key("it"))
		ctx, cancel := bounded(t)
		defer cancel()
		head := waitFor(ctx, t, db, newLocker(t, db), "it") // it has the gate, and needs no seat
		waiter := newLocker(t, db)
		var waiting <-chan outcome
		if shared {
			waiting = waitForShare(ctx, waiter)
		} else {
			waiting = waitFor(ctx, t, db, waiter, "it")
		}
		sleeps := func() bool {
			return ask[bool](t, db, `SELECT EXISTS (SELECT FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle'
				AND query LIKE '%pg_is_in_recovery%LIMIT 1%')`)
		}
		eventually(t, "the waiter sleeps", sleeps)
		if n := waitersFor(t, db, "it"); n > 1 {
			t.Errorf("%d stand in the queues; want the head", n)
		}
		leave()
		eventually(t, "the waiter stands in the queue with a seat", func() bool { return locksOn(t, db) == 5 })
		mustListOne()
		mustRelease(t, lock)
		mustRelease(t, (<-head).lock)
		out := <-waiting
		if out.err != nil {
			t.Fatal(out.err)
		}
		if n := locksOn(t, db); n != 1 {
			t.Errorf("%d locks; want that of the holder, whose seat is free again", n)
		}
		mustRelease(t, out.lock)
		eventually(t, "nothing is held", func() bool { return locksOn(t, db) == 0 })
	}
}
