package leasetable_test

import (
	"context"
	"encoding/hex"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
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

// I36.
func TestAReleaseWakesWhoWaitsInAnotherProcess(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	lockers := []*leasetable.Locker{newLocker(t, db.DB), newLocker(t, db.DB)}
	for _, l := range lockers {
		leasetable.LookNoMore(l)
	}
	held := take(t, lockers[0], "x")
	for i := range 20 { // by polling alone it would take an hour, except for each waiter's first read
		next := acquiring(lockers[(i+1)%2], "x")
		eventually(t, func() bool { return wanted(t, db) && leasetable.Hears(lockers[(i+1)%2]) })
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		select {
		case held = <-next:
		case <-time.After(time.Minute):
			t.Fatal("nobody was woken")
		}
		if held == nil {
			t.Fatal("the waiter failed")
		}
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// durably has the options for releases that wait for the disk, and for those that do not.
var durably = map[string][]leasetable.Option{"by default": nil, "durably": {leasetable.WithDurableRelease()}}

func TestOnlyAReleaseThatSomebodyWaitsForNotifies(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, opts := range durably {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := withTables(t, sqltest.Postgres(t))
			conn, err := pgx.Connect(t.Context(), db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			if _, err := conn.Exec(t.Context(), "LISTEN sqllock"); err != nil {
				t.Fatal(err)
			}
			heard := func() string {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				n, err := conn.WaitForNotification(ctx)
				if err != nil {
					t.Fatal(err)
				}
				return n.Payload
			}
			l := newLocker(t, db.DB, opts...)
			for range 2 { // the second time its token is known
				release(t, take(t, l, "x"))
			}
			run(t, db, "SELECT pg_notify('sqllock', 'the end')")
			if said := heard(); said != "the end" {
				t.Errorf("a release that nobody waits for says %q", said)
			}
			for range 2 {
				lease := take(t, l, "x")
				run(t, db, "UPDATE sqllock_lock SET waiter_until = now() + interval '1 minute', waiter_since = 42")
				release(t, lease)
				if said, want := heard(), "42 "+hex.EncodeToString([]byte("x")); said != want {
					t.Errorf("a release that somebody waits for says %q; want %q", said, want)
				}
			}
		})
	}
}

// If no notification arrives, polling detects the release. I35.
func TestAWaiterThatHearsNothingGetsTheLockAllTheSame(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, a, "x")
		next := acquiring(b, "x")
		eventually(t, func() bool { return wanted(t, db) })
		if db.Engine == sqltest.EnginePostgres {
			eventually(t, func() bool { return leasetable.Hears(b) })
		}
		run(t, db, "UPDATE sqllock_lock SET lease_id = NULL WHERE lease_id IS NOT NULL") // a manual release
		select {
		case lock := <-next:
			if lock == nil {
				t.Fatal("the waiter failed")
			}
			if err := lock.Release(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the waiter did not look")
		}
		_ = lease.Release(t.Context()) // it was lost
	})
}

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
			before := holds.Load()
			lease := <-lock
			if lease == nil {
				t.Fatal("the waiter failed")
			}
			if n := holds.Load() - before; n > 20 {
				t.Errorf("the lock was taken %d times by another process after it was known that somebody waits", n)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		cancel()
		<-done
	})
}

// The noted waiter, since 42, never comes.
func TestWhoHadANameLastLooksForSomebodyElseWhoTakesIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		until := "'2200-01-01'"
		if db.Engine == sqltest.EngineSQLite {
			until = "7258118400000000"
		}
		counted, statements := counting(t, db)
		l := newLocker(t, counted, leasetable.WithTTL(time.Minute))
		held := take(t, l, "x")
		run(t, db, "UPDATE sqllock_lock SET waiter_since = 42, waiter_until = "+until)
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		before := statements.n.Load()
		again := <-acquiring(l, "x")
		if again == nil {
			t.Fatal("it waits for ever for one who is gone")
		}
		if n := statements.n.Load() - before; n < 3 {
			t.Errorf("it has the name again by %d statements; want two looks and a claim", n)
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
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
	run(t, db, `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN new.metadata = convert_to(current_setting('synchronous_commit'), 'UTF8'); RETURN new; END $$`)
	run(t, db, "CREATE TRIGGER note BEFORE UPDATE ON sqllock_lock FOR EACH ROW EXECUTE FUNCTION note()")
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
		if err := db.GetContext(t.Context(), &got, "SELECT convert_from(metadata, 'UTF8') FROM sqllock_lock WHERE name = $1", []byte(name)); err != nil {
			t.Fatal(err)
		}
		if !strings.EqualFold(got, test.want) {
			t.Errorf("%s a release is committed with synchronous_commit %s; want %s", name, got, test.want)
		}
	}
}

// A waiter whose claim continues in the background may stop listening after the next waiter has begun to listen.
func TestAWaiterThatStopsListeningLeavesTheNextOneItsEars(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	l := newLocker(t, withTables(t, sqltest.Postgres(t)).DB)
	gone := leasetable.Listen(l, "x")
	next := leasetable.Listen(l, "x")
	gone()
	if !leasetable.Waits(l, "x") {
		t.Error("nobody listens any more")
	}
	next()
	if leasetable.Waits(l, "x") {
		t.Error("somebody listens still")
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
			if <-next == nil {
				t.Fatal("the waiter failed")
			}
			if wanted(t, db) {
				t.Errorf("the next holder of the name that was %s is noted to wait for it", how)
			}
			run(t, db, "UPDATE sqllock_lock SET waiter_until = NULL")
		}
	})
}
