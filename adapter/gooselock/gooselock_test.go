package gooselock_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gooselock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// newProvider returns a provider of the given migrations that has read the version, so that the table of versions is there.
func newProvider(t *testing.T, p adaptertest.Place, migrations []*goose.Migration, opts ...goose.ProviderOption) *goose.Provider {
	t.Helper()
	dialect := map[sqltest.Engine]goose.Dialect{
		sqltest.EnginePostgres: goose.DialectPostgres, sqltest.EngineMySQL: goose.DialectMySQL,
		sqltest.EngineMariaDB: goose.DialectMySQL, sqltest.EngineSQLite: goose.DialectSQLite3,
	}[p.Engine]
	opts = append(opts, goose.WithGoMigrations(migrations...), goose.WithDisableGlobalRegistry(true))
	provider, err := goose.NewProvider(dialect, p.DB.DB, nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.GetDBVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
	return provider
}

// threeMigrations returns migrations that take 300 ms each, and no transaction.
func threeMigrations() []*goose.Migration {
	slow := func(ctx context.Context, _ *sql.DB) error {
		select {
		case <-time.After(300 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	var all []*goose.Migration
	for version := range int64(3) {
		all = append(all, migration(version+1, slow))
	}
	return all
}

func migration(version int64, up func(context.Context, *sql.DB) error) *goose.Migration {
	return goose.NewGoMigration(version, &goose.GoFunc{RunDB: up}, nil)
}

func TestALossIsReturnedByTheCommand(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		locks, operator := p.Leases(t), p.Leases(t)
		takesItAway := migration(1, func(ctx context.Context, _ *sql.DB) error {
			_, err := operator.ForceRelease(ctx, "migrations")
			return err
		})
		provider := newProvider(t, p, []*goose.Migration{takesItAway}, goose.WithLocker(gooselock.New(locks, "migrations")))
		if _, err := provider.Up(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Up, whose lock was lost: %v", err)
		}
		if _, err := provider.Up(t.Context()); err != nil {
			t.Errorf("Up after that: %v", err)
		}
	})
}

func TestANilLockerIsAnError(t *testing.T) {
	t.Parallel()
	var none *pg.Locker
	for _, locker := range []*gooselock.Locker{gooselock.New(none, "migrations"), gooselock.New[sqllock.Lock](nil, "migrations")} {
		if err := locker.Lock(t.Context(), nil); err == nil {
			t.Error("Lock succeeds")
		}
	}
}

func TestAFailedMigrationReleasesTheLock(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		broken := errors.New("broken")
		ctx, cancel := context.WithCancel(t.Context())
		breaks := migration(1, func(context.Context, *sql.DB) error { cancel(); return broken })
		provider := newProvider(t, p, []*goose.Migration{breaks}, goose.WithLocker(gooselock.New(p.Locker(t), "migrations")))
		if _, err := provider.Up(ctx); !errors.Is(err, broken) {
			t.Errorf("Up, whose migration is broken: %v", err)
		}
		other := gooselock.New(p.Locker(t), "migrations", sqllock.WithWait(0))
		if err := errors.Join(other.Lock(t.Context(), nil), other.Unlock(t.Context(), nil)); err != nil {
			t.Errorf("after a failed migration another process gets: %v", err)
		}
	})
}

func TestAHeldLockIsSaidToBeHeld(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		one := gooselock.New(p.Locker(t), "migrations")
		if err := one.Lock(t.Context(), p.DB.DB); err != nil {
			t.Fatal(err)
		}
		other := gooselock.New(p.Locker(t), "migrations", sqllock.WithWait(0))
		var held *sqllock.HeldError
		if err := other.Lock(t.Context(), p.DB.DB); !errors.As(err, &held) {
			t.Errorf("Lock of a name that is held: %v", err)
		}
		if err := one.Unlock(t.Context(), p.DB.DB); err != nil {
			t.Error(err)
		}
		if err := errors.Join(other.Lock(t.Context(), p.DB.DB), other.Unlock(t.Context(), p.DB.DB)); err != nil {
			t.Errorf("once it is free: %v", err)
		}
	})
}

func TestProvidersThatShareALockerWaitNoLongerThanItsOptionsSay(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		shared := gooselock.New(p.Locker(t), "migrations", sqllock.WithWait(0))
		if err := shared.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := shared.Lock(t.Context(), nil); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("a second Lock: %v", err)
		}
		if err := errors.Join(shared.Unlock(t.Context(), nil), shared.Lock(t.Context(), nil), shared.Unlock(t.Context(), nil)); err != nil {
			t.Errorf("after that: %v", err)
		}
	})
}

// Even if the lock of one provider is lost, another one of the same process does not migrate beside it.
func TestASharedLockerIsUsedByOneAtATime(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		locks := p.Leases(t)
		shared := gooselock.New(locks, "migrations")
		if err := shared.Lock(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := locks.ForceRelease(t.Context(), "migrations"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := shared.Lock(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second Lock: %v", err)
		}
		if err := shared.Unlock(t.Context(), nil); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Unlock of the first: %v", err)
		}
		if err := shared.Unlock(t.Context(), nil); err == nil {
			t.Error("an Unlock without a Lock succeeds")
		}
		if err := errors.Join(shared.Lock(t.Context(), nil), shared.Unlock(t.Context(), nil)); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

func TestAPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		p.SetMaxOpenConns(1)
		inTx := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE orders (id INT)")
			return err
		}}, nil)
		provider := newProvider(t, p, []*goose.Migration{inTx}, goose.WithLocker(gooselock.New(p.Locker(t), "migrations")))
		if results, err := provider.Up(t.Context()); err != nil || len(results) != 1 {
			t.Errorf("Up applied %d migrations: %v", len(results), err)
		}
	})
}

func TestGoosesOwnSessionLockIsExcludedByItsKey(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, false)
	ours := gooselock.New(p.Locker(t), "migrations", pg.WithKey(lock.DefaultLockID), sqllock.WithWait(0))
	theirs, err := lock.NewPostgresSessionLocker()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := p.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := theirs.SessionLock(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := ours.Lock(t.Context(), nil); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("while goose's own locker has it: %v", err)
	}
	if err := theirs.SessionUnlock(t.Context(), conn); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ours.Lock(t.Context(), nil), ours.Unlock(t.Context(), nil)); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// What the package documentation says of SQLite.
func TestOnSQLiteALongTransactionEndsALeaseOfTheSameFile(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	leases := p.Leases(t, leasetable.WithTTL(3*time.Second))
	long := goose.NewGoMigration(1, &goose.GoFunc{RunTx: func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "CREATE TABLE orders (id INT)"); err != nil {
			return err
		}
		select {
		case <-time.After(4500 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}}, nil)
	provider := newProvider(t, p, []*goose.Migration{long}, goose.WithLocker(gooselock.New(leases, "migrations")))
	if _, err := provider.Up(t.Context()); !errors.Is(err, sqllock.ErrExpired) {
		t.Errorf("Up: %v", err)
	}
	if version, err := provider.GetDBVersion(t.Context()); err != nil || version != 1 {
		t.Errorf("the version is %d: %v", version, err)
	}
}
