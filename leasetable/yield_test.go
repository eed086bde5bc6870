package leasetable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// A process that acquires a lock repeatedly yields to a waiter of another process. I25.
func TestAProcessThatTakesALockAgainAndAgainGivesWay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		busy := newLocker(t, db.DB)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var holds atomic.Int64
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				err := sqllock.Do(ctx, busy, "x", func(context.Context) error { holds.Add(1); return nil })
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		}()
		eventually(t, func() bool { return holds.Load() > 100 })
		since := func() int { return count(t, db, "SELECT coalesce(max(waiter_since), 0) FROM sqllock_lock") }
		for range 5 {
			was := since()
			lock := acquiring(newLocker(t, db.DB), "x") // a new Locker, which does not yield to the other
			eventually(t, func() bool { return since() > was || len(lock) > 0 })
			began, before := time.Now(), holds.Load()
			lease := mustGet(t, lock)
			// A process that yields leaves the name alone for 75 ms each time. A machine that is slow can keep the waiter longer.
			took, n := time.Since(began), holds.Load()-before
			if n > 20+int64(took/(50*time.Millisecond)) {
				t.Errorf("in %v the lock was taken %d times by another process after it was known that somebody waits", took, n)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		<-done
	})
}

// The wait of a process that had the lock just now ends in the server's queue: the server is well, and somebody has the
// lock.
func TestAWaitThatEndsWhileOthersAreFirstIsNoOutage(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		if db.Engine == sqltest.EngineSQLite {
			t.Skip("there is no queue in the server")
		}
		var retried atomic.Bool
		tell := func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Retrying {
				retried.Store(true)
			}
		}
		first, second := newLocker(t, db.DB, leasetable.WithHook(tell)), newLocker(t, db.DB)
		for shown, round := 0, 0; shown < 3 && round < 20; round++ {
			lock := take(t, first, "x")
			next := acquiring(second, "x")
			eventually(t, func() bool {
				return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE waiter_until IS NOT NULL") > 0
			})
			began := time.Now()
			release(t, lock)
			held := mustGet(t, next)
			retried.Store(false)
			yields := time.Since(began) < time.Second/2 // a second after the release first would not go to the queue
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			_, err := first.Acquire(ctx, "x")
			cancel()
			if yields {
				shown++
				if !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || retried.Load() {
					t.Errorf("got %v, the wait went on: %t; want that the lock is held and that the time is over", err, retried.Load())
				}
			}
			release(t, held)
		}
	})
}

// The noted waiter, since 42, never comes.
func TestWhoYieldsDoesNotWaitForWhoIsGone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		until := "'2200-01-01'"
		if db.Engine == sqltest.EngineSQLite {
			until = "7258118400000000"
		}
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Minute))
		held := take(t, l, "x")
		run(t, db, "UPDATE sqllock_lock SET waiter_since = 42, waiter_until = "+until)
		release(t, held)
		releaseNext(t, acquiring(l, "x"))
	})
}

func TestWhoWaitsIsNotedOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		lease := take(t, newLocker(t, db.DB), "x")
		ctx, cancel := context.WithCancel(t.Context())
		since := func() int {
			return count(t, db, "SELECT coalesce(max(waiter_since), 0) FROM sqllock_lock")
		}
		var first int
		for i := range 3 {
			l := newLocker(t, db.DB)
			go func() { _, _ = l.Acquire(ctx, "x") }()
			if i == 0 {
				eventually(t, func() bool { return wanted(t, db) })
				first = since()
				if count(t, db, "SELECT count(exclusive_waiter_until) FROM sqllock_lock") != 0 {
					t.Error("those who hold the name together are kept out, of whom there are none")
				}
			}
			eventually(t, func() bool { return leasetable.Waits(l, "x") })
		}
		if got := since(); got != first {
			t.Errorf("a waiter is noted since %d; want the first, since %d", got, first)
		}
		infos, err := newLocker(t, db.DB).List(t.Context(), "x")
		if err != nil || len(infos) != 1 || infos[0].WaiterSince.UnixMicro() != int64(first) {
			t.Errorf("List = %+v, %v; want a waiter since %d", infos, err, first)
		}
		cancel()
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The Locker does not change the settings of a pooler's sessions. I12.
func TestReleasesAreDurableWhereTheyMustBe(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	run(t, db, "CREATE TABLE note (name bytea PRIMARY KEY, commits text)")
	run(t, db, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO note VALUES (new.name, current_setting('synchronous_commit')) ON CONFLICT (name) DO UPDATE SET commits = excluded.commits;
		RETURN NULL;
	END $$`)
	run(t, db, `CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON sqllock_lock DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION note()`)
	for name, test := range map[string]struct {
		options []leasetable.Option
		acquire []sqllock.Option
		want    string
	}{
		"by default":    {nil, nil, "off"},
		"as asked for":  {[]leasetable.Option{leasetable.WithDurableRelease()}, nil, "on"},
		"for long, too": {nil, []sqllock.Option{leasetable.WithHoldAtLeast(time.Microsecond)}, "on"},
	} {
		l := newLocker(t, db.DB, test.options...)
		for range 2 { // the second time its token is known
			release(t, take(t, l, name, test.acquire...))
		}
		var got string
		if err := db.GetContext(t.Context(), &got, "SELECT commits FROM note WHERE name = $1", []byte(name)); err != nil {
			t.Fatal(err)
		}
		if !strings.EqualFold(got, test.want) {
			t.Errorf("%s a release is committed with synchronous_commit %s; want %s", name, got, test.want)
		}
	}
}

func TestWhoHasTheNameIsNotNotedToWaitForIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		for how, end := range map[string]func(*leasetable.Lease){
			"released": func(lease *leasetable.Lease) { release(t, lease) },
			"expired":  func(lease *leasetable.Lease) { expireLease(t, db, lease.Name()) },
		} {
			lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), how)
			next := acquiring(newLocker(t, db.DB), how)
			eventually(t, func() bool { return wanted(t, db) })
			end(lease)
			mustGet(t, next)
			if wanted(t, db) {
				t.Errorf("the next holder of the name that was %s is noted to wait for it", how)
			}
			run(t, db, "UPDATE sqllock_lock SET waiter_until = NULL")
		}
	})
}
