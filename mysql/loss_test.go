package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAKilledConnectionIsNoticedWithinTheHeartbeatAndCostsItsOwnLocksOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
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

		kill(t, db, "a")
		if took := mustBeLost(t, a); took > 4*time.Second {
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
	})
}

// A lock is not silently taken again: the holder is told even if it asks for something else
// before the end of the connection was noticed.
func TestALostLockIsNotTakenAgainBehindItsHoldersBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		l := newLocker(t, db)
		a := mustTry(t, l, "a")
		kill(t, db, "a")
		b := mustAcquire(t, l, "b")
		mustBeLost(t, a)
		mustLive(t, b)
		mustRelease(t, b)
	})
}

func TestAWaitThatIsKilledFailsAndHoldsNothing(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"KILL", "KILL QUERY"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, db *sqltest.Database) {
				t.Helper()
				l := newLocker(t, db)
				lock, other := mustTry(t, newLocker(t, db), "a"), mustTry(t, l, "other")
				ctx, cancel := bounded(t)
				defer cancel()
				waiting := waitFor(ctx, t, db, l, "a")
				eventually(t, "the wait is hit", func() bool {
					var ids []int
					if err := db.SelectContext(ctx, &ids,
						"SELECT ID FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'"); err != nil {
						t.Fatal(err)
					}
					for _, id := range ids {
						_, _ = db.ExecContext(ctx, fmt.Sprintf("%s %d", how, id)) // it may have gone
					}
					return len(waiting) > 0
				})
				if out := <-waiting; out.err == nil || errors.Is(out.err, sqllock.ErrLost) {
					t.Fatalf("Acquire = %v, %v", out.lock, out.err)
				}
				mustLive(t, lock)
				mustLive(t, other)
				mustRelease(t, lock)
				mustRelease(t, other)
				mustRelease(t, mustAcquire(t, l, "a"))
				eventually(t, "nobody holds the lock", func() bool { return holderOf(t, db, "a") == 0 })
			})
		})
	}
}

func TestAServerThatGoesAway(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			const ttl = 3 * time.Second
			srv := sqltest.Start(t, engine)
			t.Logf("server: %s", srv)
			db := srv.Database(t)
			l := newLocker(t, db, mysql.WithSessionTTL(ttl))

			lock := mustTry(t, l, "a")
			statement(t, db, "SET GLOBAL read_only = 1")
			mustBeLost(t, lock)
			if !errors.Is(context.Cause(lock.Context()), sqllock.ErrRefused) {
				t.Errorf("read-only: the lock ended with %v", context.Cause(lock.Context()))
			}
			statement(t, db, "SET GLOBAL read_only = 0")

			lock = mustTry(t, l, "a")
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
			mustRelease(t, lock)

			statement(t, db, "SET GLOBAL read_only = 1")
			mustBeRefused(t, newLocker(t, db), "read-only")
			statement(t, db, "SET GLOBAL read_only = 0")
			mustRelease(t, mustAcquire(t, newLocker(t, db), "a"))
		})
	}
}

func mustBeRefused(t *testing.T, l sqllock.Locker, seen string) {
	t.Helper()
	_, err := l.TryAcquire(t.Context(), "a")
	mustSayWhy(t, err, seen)
}

func TestHoldsAsLongAsASliceOfAWaitStarveNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		locktest.MustServeAll(t, func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) }, 990*time.Millisecond)
	})
}
