package migratelock_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	upstream "github.com/golang-migrate/migrate/v4/database/testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/migratelock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestMigratesOwnSuite(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		apart := adaptertest.At(t, p.Engine, p.Lease) // the suite drops all tables
		upstream.Test(t, migratelock.Wrap(newDriver(t, p), apart.Locker(t), "migrations"), []byte("CREATE TABLE orders (id INT)"))
	})
}

// inside counts the drivers that run a migration at the same time.
type inside struct {
	mu        sync.Mutex
	now, most int
}

func (i *inside) run(run func() error) error {
	i.mu.Lock()
	i.now++
	i.most = max(i.most, i.now)
	i.mu.Unlock()
	<-time.After(100 * time.Millisecond)
	defer func() {
		i.mu.Lock()
		i.now--
		i.mu.Unlock()
	}()
	return run()
}

func TestOneOfThreeMigrates(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		var in inside
		var all []*migrate.Migrate
		for range 3 {
			d := observed{Driver: newDriver(t, p), run: in.run}
			all = append(all, newMigrate(t, migratelock.Wrap(d, p.Locker(t), "migrations"),
				"CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)", "CREATE TABLE c (id INT)"))
		}
		migrated := 0
		for _, err := range ups(all) {
			switch {
			case err == nil:
				migrated++
			case !errors.Is(err, migrate.ErrNoChange):
				t.Errorf("Up: %v", err)
			}
		}
		if migrated != 1 || in.most != 1 {
			t.Errorf("%d processes migrated, %d at the same time", migrated, in.most)
		}
	})
}

// ups calls Up of all at the same time.
func ups(all []*migrate.Migrate) []error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { errs[i] = m.Up() })
	}
	wg.Wait()
	return errs
}

// The control of the above: migrate's driver for SQLite excludes only those that share it.
func TestSQLitesOwnLockExcludesNoOtherProcess(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, false)
	one, other := newDriver(t, p), newDriver(t, p)
	if err := errors.Join(one.Lock(), other.Lock()); err != nil {
		t.Errorf("one of two processes is excluded: %v", err)
	}
	if err := errors.Join(one.Unlock(), other.Unlock()); err != nil {
		t.Error(err)
	}
}

// losing is a driver that holds a lease, and what takes the lease away from it.
func losing(t *testing.T, p adaptertest.Place, d database.Driver) (locked database.Driver, lose func()) {
	t.Helper()
	lost := make(chan struct{}, 10)
	leases := p.Leases(t, leasetable.WithTTL(6*time.Second), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Lost {
			lost <- struct{}{}
		}
	}))
	operator := p.Leases(t)
	return migratelock.Wrap(d, leases, "migrations"), func() {
		if _, err := operator.ForceRelease(context.Background(), "migrations"); err != nil {
			t.Error(err)
		}
		<-lost
	}
}

func isLoss(err error) bool {
	return errors.Is(err, sqllock.ErrLost) || errors.Is(err, sqllock.ErrExpired)
}

func TestANilLockerIsAnError(t *testing.T) {
	t.Parallel()
	d := newDriver(t, adaptertest.At(t, sqltest.EngineSQLite, false))
	var none *pg.Locker
	for _, wrapped := range []database.Driver{migratelock.Wrap(d, none, "migrations"), migratelock.Wrap[sqllock.Lock](d, nil, "migrations")} {
		if err := wrapped.Lock(); err == nil {
			t.Error("Lock succeeds")
		}
		if err := wrapped.Unlock(); !errors.Is(err, database.ErrNotLocked) {
			t.Errorf("Unlock: %v", err)
		}
	}
}

func TestALockThatPanicsLeavesTheDriverUnlocked(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	var panicked atomic.Bool
	leases := p.Leases(t, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Acquired && panicked.CompareAndSwap(false, true) {
			panic("a hook")
		}
	}))
	d := migratelock.Wrap(newDriver(t, p), leases, "migrations")
	func() {
		defer func() { _ = recover() }()
		_ = d.Lock()
	}()
	if err := d.Lock(); err != nil || !panicked.Load() {
		t.Fatal(err)
	}
	if err := d.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsDoneAfterALoss(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		d, lose := losing(t, p, newDriver(t, p))
		if err := d.Lock(); err != nil {
			t.Fatal(err)
		}
		lose()
		if err := d.Run(statement("CREATE TABLE orders (id INT)")); !isLoss(err) {
			t.Errorf("Run: %v", err)
		}
		if err := d.SetVersion(7, false); !isLoss(err) {
			t.Errorf("SetVersion: %v", err)
		}
		if err := d.Drop(); !isLoss(err) {
			t.Errorf("Drop: %v", err)
		}
		if version, dirty, err := d.Version(); version != database.NilVersion || dirty || err != nil {
			t.Errorf("the version is %d, %t, %v", version, dirty, err)
		}
		if err := d.Lock(); !errors.Is(err, database.ErrLocked) {
			t.Errorf("Lock before Unlock: %v", err)
		}
		if err := d.Unlock(); !isLoss(err) {
			t.Errorf("Unlock: %v", err)
		}
		if err := d.Unlock(); !errors.Is(err, database.ErrNotLocked) {
			t.Errorf("Unlock again: %v", err)
		}
		if err := errors.Join(d.Lock(), d.Run(statement("CREATE TABLE orders (id INT)")), d.Unlock()); err != nil {
			t.Errorf("with a new lock: %v", err)
		}
	})
}

func TestRunReturnsALossDuringIt(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		var lose func()
		d, lose := losing(t, p, observed{Driver: newDriver(t, p), run: func(run func() error) error {
			lose()
			return run()
		}})
		if err := d.Lock(); err != nil {
			t.Fatal(err)
		}
		if err := d.Run(statement("CREATE TABLE orders (id INT)")); !isLoss(err) {
			t.Errorf("Run: %v", err)
		}
		if err := d.Unlock(); !isLoss(err) {
			t.Errorf("Unlock: %v", err)
		}
	})
}

func TestALossDuringAMigrationLeavesTheVersionDirty(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		var lose func()
		d := newDriver(t, p)
		locked, lose := losing(t, p, observed{Driver: d, run: func(run func() error) error {
			lose()
			return run()
		}})
		err := newMigrate(t, locked, "CREATE TABLE a (id INT)", "CREATE TABLE b (id INT)").Up()
		if !isLoss(err) {
			t.Errorf("Up: %v", err)
		}
		if version, dirty, err := d.Version(); version != 1 || !dirty || err != nil {
			t.Errorf("the version is %d, %t, %v", version, dirty, err)
		}
	})
}

func TestCloseReleasesTheLock(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		d := migratelock.Wrap(openDriver(t, p), p.Locker(t), "migrations")
		if err := errors.Join(d.Lock(), d.Close()); err != nil {
			t.Fatal(err)
		}
		lock, err := p.Locker(t).TryAcquire(t.Context(), "migrations")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A program that shuts down closes the Migrate whose Up is under way: migrate has no context.
func TestCloseDoesNotReleaseTheLockOfAMigrationThatIsUnderWay(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		running, finish, closing := make(chan struct{}), make(chan struct{}), make(chan struct{})
		d := migratelock.Wrap(observed{
			Driver: openDriver(t, p),
			run:    func(func() error) error { close(running); <-finish; return nil },
			closes: func() { close(closing) },
		}, p.Locker(t), "migrations")
		if err := d.Lock(); err != nil {
			t.Fatal(err)
		}
		ran, closed := make(chan error), make(chan error)
		go func() { ran <- d.Run(statement("SELECT 1")) }()
		<-running
		go func() { closed <- d.Close() }()
		<-closing
		other := p.Locker(t)
		if _, err := other.TryAcquire(t.Context(), "migrations"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("another process gets: %v", err)
		}
		close(finish)
		if err := errors.Join(<-ran, <-closed); err != nil {
			t.Error(err)
		}
		lock, err := other.TryAcquire(t.Context(), "migrations")
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAnOpenedDriverHasTheLock(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, false)
	d, err := migratelock.Wrap(newDriver(t, p), p.Locker(t), "migrations").Open(p.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Lock(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Locker(t).TryAcquire(t.Context(), "migrations"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("another process gets: %v", err)
	}
	if err := d.Unlock(); err != nil {
		t.Error(err)
	}
}

func TestMigratesOwnLockIsExcludedByItsKey(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, false)
	var name string
	if err := p.GetContext(t.Context(), &name, "SELECT current_database()"); err != nil {
		t.Fatal(err)
	}
	id, err := database.GenerateAdvisoryLockId(name, "public", "schema_migrations")
	if err != nil {
		t.Fatal(err)
	}
	key, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	theirs := newDriver(t, p)
	ours := migratelock.Wrap(newDriver(t, p), p.Locker(t), "migrations", pg.WithKey(key), sqllock.WithWait(0))
	if err := theirs.Lock(); err != nil {
		t.Fatal(err)
	}
	if err := ours.Lock(); !errors.Is(err, database.ErrLocked) || !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("while migrate's own lock is held: %v", err)
	}
	if err := errors.Join(theirs.Unlock(), ours.Lock(), ours.Unlock()); err != nil {
		t.Error(err)
	}
}
