package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/stall"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// inAnHour is the expiry of a lease after the clock was set back by an hour, as its waiters read it. A dead process
// does not renew the lease.
var inAnHour = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "now() + interval '1 hour'", sqltest.EngineSQLite: "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 3600000000",
	sqltest.EngineMySQL: "UTC_TIMESTAMP() + INTERVAL 1 HOUR", sqltest.EngineMariaDB: "UTC_TIMESTAMP() + INTERVAL 1 HOUR",
}

// I11.
func TestAClockThatWasSetBackDoesNotKeepADeadHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		token := h.mustHold(t)
		if err := h.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+inAnHour[db.Engine])
		began := time.Now()
		if next := take(t, newLocker(t, db.DB), "x", leasetable.WithGiveUpEarly()).Token(); next != token+1 || time.Since(began) < holderTTL {
			t.Errorf("after %v the next holder has token %d, after %d", time.Since(began), next, token)
		}
	})
}

// I11.
func TestALiveHolderOutlastsAWaiterWhateverTheClockSays(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const ttl = 10 * time.Second
		holder := newLocker(t, db.DB, leasetable.WithTTL(ttl))
		lease := take(t, holder, "x")
		waiter := newLocker(t, db.DB)
		next := acquiring(waiter, "x")
		for began := time.Now(); time.Since(began) < ttl*5/4; {
			mustRenew(t, lease) // often: so it survives a machine that stops
			run(t, db, "UPDATE sqllock_lease SET expires_at = "+inAnHour[db.Engine])
			<-time.After(ttl / 20)
		}
		mustVerify(t, lease)
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if token := mustGet(t, next).Token(); token != 2 {
			t.Errorf("the next holder has token %d", token)
		}
	})
}

// Perhaps the database's clock was set ahead, and a takeover is in progress. I10.
func TestALeaseThatHasExpiredIsNotRenewed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
		run(t, db, "UPDATE sqllock_lease SET expires_at = created_at")
		renewUntilLost(t, lease)
		if lease.Context().Err() == nil {
			t.Error("its holder does not know")
		}
	})
}

func TestRenewAndRemaining(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const ttl = time.Hour
		l := newLocker(t, db.DB, leasetable.WithTTL(ttl))
		lease := take(t, l, "x")
		before := lease.Remaining()
		mustRenew(t, lease)
		after := lease.Remaining()
		if before <= 0 || before > ttl || after > ttl || after < ttl*4/5 {
			t.Errorf("%v were left, and %v after a renewal", before, after)
		}
		if n := count(t, db, "SELECT renewals FROM sqllock_lease"); n == 0 {
			t.Error("no renewal")
		}
		run(t, db, "DELETE FROM sqllock_lease")
		renewUntilLost(t, lease)
		if left := lease.Remaining(); left != 0 {
			t.Errorf("%v are left of it", left)
		}
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("another Renew: %v", err)
		}
	})
}

func TestALockThatWillEndSoonIsToldBefore(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	watch := stall.Start()
	defer watch.Stop()
	events := make(chan sqllock.Event, 100)
	l := newLocker(t, db.DB, leasetable.WithTTL(18*time.Second), leasetable.WithHook(func(_ context.Context, e sqllock.Event) { events <- e }))
	began := time.Now()
	lease := take(t, l, "x")
	tx, err := db.Beginx()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE sqllock_lease"); err != nil { // blocks all renewals
		t.Fatal(err)
	}
	e := receive(t, events)
	for e.Kind != event.Expiring && e.Kind != event.Lost {
		e = receive(t, events)
	}
	switch stalled := watch.Longest(began) > unanswered; { // then the warning and the end may have been due at once
	case stalled:
		t.Skip("the machine stalled")
	case e.Kind == event.Lost:
		t.Error("the lock was lost without a warning")
	case e.Locks != 1 || e.Took != 0 || e.Left <= 0 || e.Left > 9*time.Second/2 || lease.Context().Err() != nil:
		t.Errorf("%+v; the lock's end: %v", e, lease.Context().Err())
	}
}

// The waiter has read the lease unchanged for its TTL, but it is renewed before the waiter can end it. I11.
func TestARenewalThatComesFirstKeepsALeaseThatStoodStill(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		// No renewal in the background interferes: only the row decides.
		lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
		run(t, db, "UPDATE sqllock_lease SET ttl_us = 200000")
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), tx.Rebind("UPDATE sqllock_lease SET renewals = 7, ttl_us = 3600000000 WHERE id = ?"), leaseOf(t, db, "x")); err != nil {
			t.Fatal(err)
		}
		waiter := newLocker(t, db.DB)
		ctx, cancel := context.WithCancel(t.Context())
		waited := make(chan error, 1)
		go func() {
			_, err := waiter.Acquire(ctx, "x")
			waited <- err
		}()
		eventually(t, func() bool { return waitsForRow(t, db) })
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return !waitsForRow(t, db) })
		if n := count(t, db, "SELECT count(*) FROM sqllock_lease WHERE renewals = 7"); n != 1 {
			t.Error("a lease that was renewed was ended")
		}
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		mustVerify(t, lease)
	})
}
