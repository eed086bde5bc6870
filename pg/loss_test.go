package pg_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestATerminatedBackendIsNoticedAtOnceAndCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l, elsewhere := newLocker(t, db), newLocker(t, db)
	// "b" was waited for, and so is on a connection of its own.
	a, b := mustTry(t, l, "a"), mustTry(t, elsewhere, "b")
	ctx, cancel := bounded(t)
	defer cancel()
	waiting := waitFor(ctx, t, db, l, "b")
	mustRelease(t, b)
	out := <-waiting
	if out.err != nil {
		t.Fatal(out.err)
	}
	c := mustTry(t, elsewhere, "c")

	terminate(t, db, "a")
	if took := mustBeLost(t, a); took > 2*time.Second {
		t.Errorf("the holder was told after %v", took)
	} else {
		t.Logf("the holder was told after %v", took)
	}
	mustLive(t, out.lock)
	mustLive(t, c)
	again := mustAcquire(t, l, "a")
	mustBeHeld(t, elsewhere, "a")
	mustRelease(t, again)
	mustRelease(t, out.lock)
	mustRelease(t, c)
}

// A lock is not silently taken again: the holder is told even if it asks for something else
// before the end of the connection was noticed.
func TestALostLockIsNotTakenAgainBehindItsHoldersBack(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	a := mustTry(t, l, "a")
	terminate(t, db, "a")
	b := mustAcquire(t, l, "b")
	mustBeLost(t, a)
	mustLive(t, b)
	mustRelease(t, b)
}

func TestAServerThatGoesAway(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	srv := sqltest.Start(t, sqltest.EnginePostgres)
	t.Logf("server: %s", srv)
	db := srv.Database(t)
	l := newLocker(t, db, pg.WithSessionTTL(ttl))

	lock := mustTry(t, l, "a")
	srv.Pause()
	if took := mustBeLost(t, lock); took >= ttl {
		t.Errorf("paused: the holder was told after %v; the server could free the lock after %v", took, ttl)
	}
	srv.Resume()
	lock = mustAcquire(t, l, "a")

	srv.Kill()
	mustBeLost(t, lock)
	if _, err := l.TryAcquire(t.Context(), "a"); err == nil || !sqllock.IsRetryable(err) {
		t.Errorf("killed: TryAcquire = %v; want an error that may be retried", err)
	}
	srv.Start()
	lock = mustAcquire(t, l, "a")

	srv.Stop()
	mustBeLost(t, lock)
	srv.Start()
	mustRelease(t, mustAcquire(t, l, "a"))
}
