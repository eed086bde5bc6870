package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func mustBeHeld(t *testing.T, l *leasetable.Locker, name string) sqllock.Holder {
	t.Helper()
	_, err := locktest.TryAnswered(t.Context(), l, name)
	var held *sqllock.HeldError
	if !errors.As(err, &held) {
		t.Fatalf("TryAcquire(%q): %v; want a *HeldError", name, err)
	}
	return held.Holder
}

// I12.
func TestTokensRise(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		var last int64
		for i := range 6 {
			l := []*leasetable.Locker{a, b}[i%2]
			lease := take(t, l, "x")
			if lease.Token() <= last {
				t.Errorf("token %d came after %d", lease.Token(), last)
			}
			last = lease.Token()
			if i == 3 { // this holder dies instead
				run(t, db, "DELETE FROM sqllock_lease WHERE id = (SELECT lease_id FROM sqllock_lock WHERE name = ?)", []byte("x"))
				continue
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAHeldNameTellsItsHolder(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a := newLocker(t, db.DB, leasetable.WithOwner("the \xffowner\x00"), leasetable.WithTTL(time.Hour))
		b := newLocker(t, db.DB)
		if info, err := b.Inspect(t.Context(), "x"); info.Held || err != nil {
			t.Fatalf("Inspect of a free name: %+v, %v", info, err)
		}
		lease := take(t, a, "x")
		h := mustBeHeld(t, b, "x")
		if h.Owner != "the owner" || h.PID == 0 || h.Host == "" || h.Token != lease.Token() {
			t.Errorf("the holder is told as %+v", h)
		}
		if left := time.Until(h.Until); left < 59*time.Minute || left > 61*time.Minute {
			t.Errorf("a lease of an hour has %v left", left)
		}
		if ago := time.Since(h.Since); ago < -time.Minute || ago > time.Minute {
			t.Errorf("a lock taken just now was taken %v ago", ago)
		}
		info, err := b.Inspect(t.Context(), "x")
		if err != nil || !info.Held || info.Holder != h {
			t.Errorf("Inspect = %+v, %v; want what TryAcquire told: %+v", info, err, h)
		}
	})
}

func TestOneRenewalKeepsAllLocks(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(3*time.Hour))
		leases := make([]*leasetable.Lease, 50)
		for i := range leases {
			leases[i] = take(t, l, fmt.Sprint(i))
		}
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+inAnHour[db.Engine])
		mustRenew(t, leases[0])
		if n := leaseRows(t, db); n != 1 {
			t.Errorf("%d leases", n)
		}
		other := newLocker(t, db.DB)
		for i, lease := range leases {
			if h := mustBeHeld(t, other, fmt.Sprint(i)); time.Until(h.Until) < 2*time.Hour {
				t.Errorf("%d is held until %v", i, h.Until)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestEveryTTLHasItsOwnLease(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		for i, ttl := range []time.Duration{time.Minute, time.Minute, time.Hour} {
			locktest.MustTry(t, l, fmt.Sprint(i), sqllock.WithTTL(ttl))
		}
		var ttls []time.Duration
		if err := db.SelectContext(t.Context(), &ttls, "SELECT ttl_us * 1000 FROM sqllock_lease ORDER BY 1"); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{time.Minute, time.Hour}; fmt.Sprint(ttls) != fmt.Sprint(want) {
			t.Errorf("the leases have the TTLs %v; want %v", ttls, want)
		}
		if _, err := l.TryAcquire(t.Context(), "short", sqllock.WithTTL(time.Millisecond)); err == nil {
			t.Error("a TTL of a millisecond was taken")
		}
	})
}

// I7.
func TestAnUnusedLeaseIsEnded(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(3*time.Second))
		if err := take(t, l, "x").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return leaseRows(t, db) == 0 })
		if token := take(t, l, "x").Token(); token != 2 { // on a new lease
			t.Errorf("token %d", token)
		}
	})
}

// I15.
func TestCloseLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "x")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrClosed) {
			t.Errorf("Release after Close: %v", err)
		}
		if n := leaseRows(t, db); n != 0 {
			t.Errorf("%d lease rows are left", n)
		}
		locktest.MustTry(t, newLocker(t, db.DB), "x")
	})
}

// Every acquisition sets the time since which the holder holds the name, in whatever way the name was acquired.
// WithHoldAtLeast counts from that time.
func TestEveryHolderIsShownSinceItsOwnAcquisition(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		longAgo := "'2000-01-01'"
		if db.Engine == sqltest.EngineSQLite {
			longAgo = "0"
		}
		age := func() { run(t, db, "UPDATE sqllock_lock SET acquired_at = "+longAgo) }
		lease := take(t, l, "x")
		for _, next := range []struct {
			how string
			get func()
		}{
			{"that was free", func() { release(t, lease); lease = take(t, l, "x") }},
			{"that somebody had locked", func() {
				release(t, lease)
				if db.Engine == sqltest.EngineSQLite { // SQLite does not lock rows
					lease = take(t, l, "x")
					return
				}
				unpin := pin(t, db, "x")
				waiting := acquiring(l, "x")
				eventually(t, func() bool { return waitsForRow(t, db) })
				unpin()
				lease = mustGet(t, waiting)
			}},
			{"that was passed on", func() {
				waiting := acquiring(l, "x")
				eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
				release(t, lease)
				lease = mustGet(t, waiting)
			}},
			{"that was handed over", func() { lease = takeOn(t, other, export(t, lease, time.Hour)) }},
			{"that was shared", func() {
				release(t, lease)
				release(t, take(t, other, "x", leasetable.WithShared()))
				age()
				lease = take(t, l, "x")
			}},
			{"that was taken with others", func() {
				release(t, lease)
				if took, err := leasetable.TakeMany(t.Context(), l, []string{"x", "y"}); err != nil || took["x"] == 0 {
					t.Fatal(took, err)
				}
			}},
			{"of a dead holder", func() { expireLease(t, db, "x"); take(t, other, "x") }},
		} {
			age()
			next.get()
			if info, err := other.Inspect(t.Context(), "x"); err != nil || !info.Held || info.Holder.Since.Year() < 2020 {
				t.Errorf("a name %s is shown as %+v, %v", next.how, info, err)
			}
		}
	})
}

// The race: a contender that has read the lease as expired waits for a row while the holder renews. I8, I10.
func TestARenewalThatComesFirstKeepsTheLock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		// No renewal in the background interferes: only the row decides.
		a := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		b := newLocker(t, db.DB)
		take(t, a, "x")
		take(t, b, "of b")
		id := leaseOf(t, db, "x")
		twoHours := map[sqltest.Engine]string{sqltest.EnginePostgres: "interval '2 hours'"}[db.Engine]
		if twoHours == "" {
			twoHours = "INTERVAL 2 HOUR"
		}
		run(t, db, "UPDATE sqllock_lease SET expires_at = expires_at - "+twoHours+" WHERE id = ?", id)

		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), tx.Rebind("UPDATE sqllock_lease SET expires_at = expires_at + "+twoHours+" WHERE id = ?"), id); err != nil {
			t.Fatal(err)
		}
		tried := make(chan error, 1)
		go func() {
			_, err := tryUntilAnswered(t.Context(), b)
			tried <- err
		}()
		eventually(t, func() bool { return waitsForRow(t, db) })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-tried; !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a contender met a renewal: %v; want ErrHeld", err)
		}
	})
}

// A contender that has read that the lease is gone waits for the row while another client takes the name over. I8, I9.
func TestATakeoverThatComesSecondTakesNothing(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
		take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "other")
		b := newLocker(t, db.DB)
		expireLease(t, db, "x")
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), tx.Rebind("UPDATE sqllock_lock SET lease_id = ?, token = 2 WHERE name = ?"), leaseOf(t, db, "other"), []byte("x")); err != nil {
			t.Fatal(err)
		}
		tried := make(chan error, 1)
		go func() {
			_, err := tryUntilAnswered(t.Context(), b)
			tried <- err
		}()
		eventually(t, func() bool { return waitsForRow(t, db) })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-tried; !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a contender met a takeover: %v; want ErrHeld", err)
		}
	})
}

func leaseRows(t *testing.T, db *sqltest.Database) int {
	t.Helper()
	return count(t, db, "SELECT count(*) FROM sqllock_lease")
}

func count(t *testing.T, db *sqltest.Database, query string) (n int) {
	t.Helper()
	if err := db.GetContext(t.Context(), &n, query); err != nil {
		t.Fatal(err)
	}
	return n
}

// waitsForRow reports whether a statement in the test's database waits for a row. On PostgreSQL one that gives up after some
// milliseconds does not count. On MySQL and MariaDB a statement counts if it is still running after several queries, because
// InnoDB's own tables of waits are not up to date when queried often.
func waitsForRow(t *testing.T, db *sqltest.Database) bool {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		return count(t, db, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query NOT LIKE '%lock_timeout%'") > 0
	}
	const running = "SELECT count(*) FROM " + processes +
		" WHERE DB = DATABASE() AND ID <> CONNECTION_ID() AND COMMAND IN ('Execute', 'Query')"
	for range 20 {
		if count(t, db, running) == 0 {
			return false
		}
	}
	return true
}

// withoutWaiting runs f, and fails if a statement in the test's database waits for a row for a second meanwhile. A
// statement that waits for a row that stays locked waits for two seconds.
func withoutWaiting(t *testing.T, db *sqltest.Database, f func()) {
	t.Helper()
	waits := map[sqltest.Engine]string{
		sqltest.EnginePostgres: `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND wait_event_type = 'Lock' AND query_start < clock_timestamp() - interval '1 second'`,
		sqltest.EngineMySQL: `SELECT count(*) FROM performance_schema.data_lock_waits w
			JOIN performance_schema.events_statements_current e ON e.THREAD_ID = w.REQUESTING_THREAD_ID
			WHERE e.CURRENT_SCHEMA = DATABASE() AND e.TIMER_WAIT > 1e12`, // picoseconds; its INNODB_TRX fails while a statement has a parameter that is not UTF-8
		sqltest.EngineMariaDB: `SELECT count(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
			WHERE p.DB = DATABASE() AND t.trx_state = 'LOCK WAIT' AND t.trx_wait_started < NOW() - INTERVAL 1 SECOND`,
	}[db.Engine]
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if count(t, db, waits) > 0 {
				t.Error("a statement waits for a row")
				<-done
				return
			}
		}
	}
}

// eventually polls until done returns true.
func eventually(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if !locktest.Poll(ctx, done) {
		t.Fatal("waited a minute for what did not happen")
	}
}
