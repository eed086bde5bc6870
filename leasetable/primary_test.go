package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// makeReadOnly makes a server answer like one that is no longer the primary, until the returned function is called.
func makeReadOnly(t *testing.T, db *sqltest.Database) (undo func()) {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		set := func(value string) {
			run(t, db, "ALTER SYSTEM SET default_transaction_read_only = "+value)
			run(t, db, "SELECT pg_reload_conf()")
		}
		set("on")
		return func() {
			conn, err := db.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			for _, statement := range []string{
				"SET default_transaction_read_only = off", "ALTER SYSTEM RESET default_transaction_read_only", "SELECT pg_reload_conf()", "RESET ALL",
			} {
				if _, err := conn.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	run(t, db, "SET GLOBAL read_only = 1")
	return func() { run(t, db, "SET GLOBAL read_only = 0") }
}

// asApplication returns a DSN of a user that, unlike root, may not write to a read-only server.
func asApplication(t *testing.T, db *sqltest.Database) string {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		return db.DSN
	}
	run(t, db, "CREATE USER application@'%' IDENTIFIED BY 'secret'")
	run(t, db, "GRANT SELECT, INSERT, UPDATE, DELETE ON *.* TO application@'%'")
	_, rest, _ := strings.Cut(db.DSN, "@")
	return "application:secret@" + rest
}

// A failover can leave a holder connected to the old primary, which is then read-only.
func serverBecomesReadOnly(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	const ttl = 9 * time.Second
	asUser := asApplication(t, db)
	l := newLocker(t, open(t, db.DriverName(), asUser), leasetable.WithTTL(ttl))
	lease := take(t, l, "x")
	writable := makeReadOnly(t, db)
	var err error
	eventually(t, func() bool { // the sessions of PostgreSQL notice it one after the other
		var lock *leasetable.Lease
		if lock, err = l.TryAcquire(t.Context(), "y"); err == nil {
			_ = lock.Release(t.Context()) // the server may be read-only now
		}
		return err != nil
	})
	if !errors.Is(err, sqllock.ErrReadOnly) {
		t.Errorf("TryAcquire: %v; want ErrReadOnly", err)
	}
	eventually(t, func() bool { // the Locker closes its connections: the primary may be elsewhere
		_, err := l.TryAcquire(t.Context(), "y")
		return errors.Is(err, sqllock.ErrReadOnly) && leasetable.Work(l).Stats().Idle == 0
	})
	app := open(t, db.DriverName(), asUser)
	met, told := onTrouble()
	waiting := acquiring(newLocker(t, app, told), "z")
	if err := receive(t, met); !errors.Is(err, sqllock.ErrReadOnly) {
		t.Errorf("a wait met %v; want ErrReadOnly", err)
	}
	met, told = onTrouble()
	elector, err := leasetable.NewElector(newLocker(t, app, told), "leader")
	if err != nil {
		t.Fatal(err)
	}
	campaigning := campaign(t, elector)
	if err := receive(t, met); !errors.Is(err, sqllock.ErrReadOnly) {
		t.Errorf("a campaign met %v; want ErrReadOnly", err)
	}
	mustBeToldWithin(t, lease, ttl) // the last confirmed statement was sent before
	if len(waiting)+len(campaigning.ended) > 0 {
		t.Error("a wait or a campaign ended because the server cannot write")
	}
	writable()
	mustGet(t, waiting)
	campaigning.mustLead(t)
	if token := take(t, newLocker(t, db.DB), "x").Token(); token != 2 {
		t.Errorf("the next holder has token %d", token)
	}
}

// A proxy may send a guard to a replica, where a lock on a row keeps nobody out. I13.
func guardOnReadOnlyServer(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	for _, lease := range []*leasetable.Lease{take(t, l, "x"), take(t, l, "y", leasetable.WithShared())} {
		guard := func() error {
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }() // it wrote nothing
			return lease.Guard(t.Context(), leasetable.SQLTx(tx))
		}
		writable := makeReadOnly(t, db)
		if err := guard(); !errors.Is(err, sqllock.ErrReadOnly) || !sqllock.IsRetryable(err) {
			t.Errorf("a guard of %s on a read-only server: %v", lease.Name(), err)
		}
		writable()
		if err := guard(); err != nil {
			t.Errorf("a guard of %s: %v", lease.Name(), err)
		}
	}
}

var errGranted = errors.New("it was granted")

func setStandbys(t *testing.T, db *sqltest.Database, standbys string) {
	t.Helper()
	run(t, db, "ALTER SYSTEM SET synchronous_standby_names = '"+standbys+"'")
	run(t, db, "SELECT pg_reload_conf()")
}

// makeAbsent makes commits wait for a standby that does not exist.
func makeAbsent(t *testing.T, db *sqltest.Database) {
	t.Helper()
	run(t, db, "CREATE TABLE IF NOT EXISTS probe (n integer)")
	setStandbys(t, db, "absent")
	for waited := false; !waited; { // it takes a moment until commits wait
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = db.ExecContext(t.Context(), "INSERT INTO probe VALUES (1)")
		}()
		eventually(t, func() bool {
			select {
			case <-done:
				return true
			default:
				waited = endWait(t, db, "INSERT INTO probe")
				return waited
			}
		})
		<-done
	}
}

// endWait ends the waits of statements for a standby, and reports whether there were any. The server then reports
// success, with a warning.
func endWait(t *testing.T, db *sqltest.Database, statement string) bool {
	t.Helper()
	return count(t, db, `SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity
		WHERE wait_event = 'SyncRep' AND query LIKE '%`+statement+`%' AND pid <> pg_backend_pid()`) > 0
}

// With synchronous replication a commit that no standby confirms is not durable. The caller gets no response, and in
// the end an error that there was none; the transaction is committed on this server only. I16.
func noStandbyConfirms(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	const ttl = 9 * time.Second
	l := newLocker(t, db.DB, leasetable.WithTTL(ttl))
	lease := take(t, l, "held before")
	makeAbsent(t, db)
	lock, err := l.TryAcquire(t.Context(), "unconfirmed")
	for range 5 {
		if err == nil || !strings.Contains(err.Error(), "does not answer a lone SELECT") { // which it does, on a machine that is not too busy
			break
		}
		lock, err = l.TryAcquire(t.Context(), "unconfirmed")
	}
	if lock != nil || err == nil || errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("what no standby confirmed was acquired: %v, %v", lock, err)
	} else if !strings.Contains(err.Error(), "synchronous_standby_names = absent") {
		t.Errorf("the error does not name the standby that is missing: %v", err)
	}
	mustBeToldWithin(t, lease, ttl) // the last confirmed statement was sent before makeAbsent

	setStandbys(t, db, "")
	for name, statement := range map[string]string{"forced through": "INSERT INTO sqllock_lock", "known": "Acquires a free name. It withdraws"} {
		quiet := open(t, db.DriverName(), with(db, "client_min_messages=error"))
		other := newLocker(t, quiet, leasetable.WithTTL(time.Hour))
		release(t, take(t, other, "known")) // also opens the lease, which cannot be opened later
		makeAbsent(t, db)
		cancelled := make(chan error, 1)
		go func() { // the server reports success, with a warning, which the application does not want
			lock, err := other.TryAcquire(context.Background(), name)
			if err == nil {
				err = errors.Join(errGranted, lock.Release(context.Background()))
			}
			cancelled <- err
		}()
		eventually(t, func() bool { return endWait(t, db, statement) })
		if err := <-cancelled; errors.Is(err, errGranted) || !sqllock.IsRetryable(err) {
			t.Errorf("what no standby confirmed, since somebody ended the wait: %v", err)
		}
		setStandbys(t, db, "")
		release(t, take(t, other, name))
	}
	other := newLocker(t, db.DB)
	take(t, other, "unconfirmed")
	take(t, other, "held before")
}

// The next holder of a name must not learn its token before a standby has it. I24.
func noStandbyConfirmsWhatIsPassedOn(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	lease := take(t, l, "x")
	next := acquiring(l, "x")
	eventually(t, func() bool { return leasetable.Waiting(l, "x") == 1 })
	makeAbsent(t, db)
	released := make(chan error)
	go func() { released <- releaseOrGiveUp(context.Background(), lease) }()
	eventually(t, func() bool { return endWait(t, db, "Hands a name") })
	setStandbys(t, db, "")
	if err := <-released; err != nil && !errors.Is(err, errGaveUp) {
		t.Errorf("Release: %v", err)
	}
	if token := mustGet(t, next).Token(); token < 3 { // 2 is the one that no standby has
		t.Errorf("the next holder has token %d", token)
	}
}

// The outcome of a release that no standby confirms is unknown. When it is repeated, nothing is left to free: it counts as
// done only if the lease is still trusted then. I16, I21.
func noStandbyConfirmsARelease(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	long := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithDurableRelease())
	short := newLocker(t, db.DB, leasetable.WithTTL(3*time.Second), leasetable.WithDurableRelease())
	trusted, together := take(t, long, "trusted"), take(t, long, "together")
	ended, onSameLease := take(t, short, "ended"), take(t, short, "on the same lease")
	makeAbsent(t, db)
	releasing := func(lease *leasetable.Lease) chan error {
		released := make(chan error, 1)
		go func() { released <- releaseOrGiveUp(context.Background(), lease) }()
		return released
	}
	endsWaits := func(released chan error, statement string) (err error) {
		eventually(t, func() bool {
			select {
			case err = <-released:
				return true
			default:
				endWait(t, db, statement)
				return false
			}
		})
		return err
	}
	released := releasing(ended)
	if cause := await(t, onSameLease); !errors.Is(cause, sqllock.ErrExpired) {
		t.Errorf("the lease ended with %v", cause)
	}
	if err := endsWaits(released, "Releases a name"); err == nil {
		t.Error("Release says that the lock was held until then, though its wait was ended after its lease")
	}
	if err := endsWaits(releasing(trusted), "Releases a name"); err != nil && !errors.Is(err, errGaveUp) {
		t.Errorf("Release, whose wait was ended while its lease was trusted: %v", err)
	}
	go func() {
		_, err := leasetable.FreeMany(context.Background(), long, []*leasetable.Lease{together})
		released <- err
	}()
	if err := endsWaits(released, "Releases the names"); !sqllock.IsRetryable(err) {
		t.Errorf("a release of many names that no standby confirmed, since somebody ended the wait: %v", err)
	}
	setStandbys(t, db, "")
	other := newLocker(t, db.DB)
	for _, name := range []string{"trusted", "together", "ended", "on the same lease"} {
		take(t, other, name)
	}
}

// The server's default settings for transactions do not matter either.
func oddDefaults(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	set, undo := []string{
		"SET GLOBAL transaction_isolation = 'SERIALIZABLE'", "SET GLOBAL autocommit = 0", "SET GLOBAL time_zone = '-05:00'",
	}, []string{
		"SET GLOBAL time_zone = 'SYSTEM'", "SET GLOBAL autocommit = 1", "SET GLOBAL transaction_isolation = 'REPEATABLE-READ'",
	}
	sane := *db // for the test itself
	settings := "autocommit=1&transaction_isolation=%27READ-COMMITTED%27"
	switch db.Engine {
	case sqltest.EngineMariaDB:
		settings = "autocommit=1&tx_isolation=%27READ-COMMITTED%27"
		set[0], undo[2] = "SET GLOBAL tx_isolation = 'SERIALIZABLE'", "SET GLOBAL tx_isolation = 'REPEATABLE-READ'"
	case sqltest.EnginePostgres:
		settings = "default_transaction_isolation=read%20committed"
		set, undo = []string{
			"ALTER SYSTEM SET default_transaction_isolation = serializable", "ALTER SYSTEM SET timezone = 'America/Bogota'", "SELECT pg_reload_conf()",
		}, []string{
			"ALTER SYSTEM RESET default_transaction_isolation", "ALTER SYSTEM RESET timezone", "SELECT pg_reload_conf()",
		}
	}
	sane.DB = open(t, db.DriverName(), with(db, settings))
	for _, statement := range set {
		run(t, &sane, statement)
	}
	defer func() {
		for _, statement := range undo {
			run(t, &sane, statement)
		}
	}()
	odd := open(t, db.DriverName(), db.DSN)
	eventually(t, func() bool { // PostgreSQL takes a moment
		var isolation string
		show := "SELECT @@SESSION.transaction_isolation"
		switch db.Engine {
		case sqltest.EngineMariaDB:
			show = "SELECT @@SESSION.tx_isolation"
		case sqltest.EnginePostgres:
			show = "SHOW transaction_isolation"
		}
		if err := odd.GetContext(t.Context(), &isolation, show); err != nil {
			t.Fatal(err)
		}
		return strings.EqualFold(isolation, "serializable")
	})

	l := newLocker(t, odd, leasetable.WithTTL(time.Hour))
	lease := take(t, l, "x")
	h := mustBeHeld(t, newLocker(t, open(t, db.DriverName(), withZone(db, 5))), "x")
	if left := time.Until(h.Until); left < 59*time.Minute || left > 61*time.Minute {
		t.Errorf("a lease of an hour has %v left", left)
	}
	mustRenew(t, lease)
	if count(t, &sane, "SELECT max(renewals) FROM sqllock_lease") == 0 {
		t.Error("Renew, which was to be committed, was not")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	locktest.Counter(t, sane.DB.DB, func(t *testing.T) locktest.Locker {
		t.Helper()
		l, err := fromDB(odd)
		if err != nil {
			t.Fatal(err)
		}
		return ofAnyKind(l)
	})
}

// withZone returns db's DSN with a session time zone this many hours ahead of UTC.
func withZone(db *sqltest.Database, hours int) string {
	if db.Engine == sqltest.EnginePostgres {
		return with(db, fmt.Sprintf("timezone=Etc/GMT%+d", -hours))
	}
	return with(db, fmt.Sprintf("time_zone=%%27%%2B%02d:00%%27", hours))
}
