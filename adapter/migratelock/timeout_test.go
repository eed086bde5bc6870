package migratelock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/migratelock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/sqltest"
)

// timed is a real Locker that tells how much time its callers give it.
type timed struct {
	sqllock.Locker
	given time.Duration
}

func (l *timed) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	deadline, _ := ctx.Deadline()
	l.given = time.Until(deadline)
	return l.Locker.Acquire(ctx, name, opts...)
}

// waiting is a Migrate that waits for a lock that another process holds.
type waiting struct {
	t      *testing.T
	locks  *timed
	other  sqllock.Locker
	held   sqllock.Lock
	m      *migrate.Migrate
	locked chan error // what Lock of its driver has returned
	up     chan error // what Up has returned
}

func startWaiting(t *testing.T, p adaptertest.Place) *waiting {
	t.Helper()
	w := &waiting{t: t, locks: &timed{Locker: p.Locker(t)}, other: p.Locker(t), locked: make(chan error, 1), up: make(chan error, 1)}
	held, err := w.other.TryAcquire(t.Context(), "migrations")
	if err != nil {
		t.Fatal(err)
	}
	w.held = held
	d := migratelock.Wrap(newDriver(t, p), w.locks, "migrations")
	w.m = newMigrate(t, observed{Driver: d, locked: func(err error) { w.locked <- err }}, "CREATE TABLE a (id INT)")
	go func() { w.up <- w.m.Up() }()
	return w
}

// After migrate's timeout nobody holds anything (golang-migrate/migrate#269).
func TestATimeoutLeavesNothing(t *testing.T) {
	t.Parallel()
	var all []*waiting // at the same time, because it takes 14 s
	for _, p := range adaptertest.All(t) {
		all = append(all, startWaiting(t, p))
	}
	for _, w := range all {
		w.check()
	}
}

func (w *waiting) check() {
	w.t.Helper()
	err := <-w.locked
	var held *sqllock.HeldError
	if !errors.Is(err, database.ErrLocked) || !errors.As(err, &held) {
		w.t.Errorf("Lock: %v", err)
	}
	if most := migrate.DefaultLockTimeout - time.Second; w.locks.given > most || w.locks.given < most-10*time.Second {
		w.t.Errorf("Lock had %s for the acquisition", w.locks.given)
	}
	if err := <-w.up; err == nil {
		w.t.Error("Up has migrated, without the lock")
	}
	if err := w.held.Release(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	// A session may still be in the server's queue for a moment, and gives back what it is granted there.
	free, err := w.other.Acquire(w.t.Context(), "migrations", sqllock.WithWait(time.Minute))
	if err != nil {
		w.t.Errorf("after the timeout, and the release, somebody keeps the lock: %v", err)
		return
	}
	if err := free.Release(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	if err := w.m.Up(); err != nil {
		w.t.Errorf("the same Migrate, later: %v", err)
	}
}

// The control: the driver's own lock of PostgreSQL is granted to a call of Lock that migrate has abandoned.
func TestMigratesOwnLockIsGrantedToNobody(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, false)
	holder := newDriver(t, p)
	granted := make(chan error, 1)
	d := newDriver(t, p)
	m := newMigrate(t, observed{Driver: d, locked: func(err error) { granted <- err }}, "CREATE TABLE a (id INT)")
	if err := holder.Lock(); err != nil {
		t.Fatal(err)
	}
	m.LockTimeout = 100 * time.Millisecond
	if err := m.Up(); !errors.Is(err, migrate.ErrLockTimeout) {
		t.Fatalf("Up: %v", err)
	}
	if err := holder.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-granted; err != nil {
		t.Errorf("the abandoned Lock: %v", err)
	}
	var locks int
	if err := p.GetContext(t.Context(), &locks, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"+
		" AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); err != nil || locks != 1 {
		t.Errorf("%d advisory locks are held: %v", locks, err)
	}
	if err := d.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfTheDatabaseAreNotCalledLocked(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	if _, err := p.ExecContext(t.Context(), "DROP TABLE sqllock_lock, sqllock_lease CASCADE"); err != nil {
		t.Fatal(err)
	}
	d := migratelock.Wrap(newDriver(t, p), p.Leases(t), "migrations")
	err := d.Lock()
	if !errors.Is(err, sqllock.ErrSchema) || errors.Is(err, database.ErrLocked) {
		t.Errorf("Lock without lease tables: %v", err)
	}
	if err != nil && strings.Contains(err.Error(), p.DSN) {
		t.Error("the error has the DSN")
	}
	if err := d.Unlock(); !errors.Is(err, database.ErrNotLocked) {
		t.Errorf("Unlock after that: %v", err)
	}
}
