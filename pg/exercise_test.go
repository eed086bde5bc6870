package pg_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocks(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	t.Logf("server: %s", db.Server)
	locktest.Exercise(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		return newLocker(t, db)
	}, options(db))
}

func TestSessionLocksFromAPool(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Exercise(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		return closing(t)(pg.FromPool(onlyConnectionBusy(t, db), pg.WithSessionTTL(time.Hour)))
	}, options(db))
}

func TestSessionLocksFromADB(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Exercise(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		return closing(t)(pg.FromDB(locktest.BusyPool(t, "pgx", db.DSN), pg.WithSessionTTL(time.Hour)))
	}, options(db))
}

func options(db *sqltest.Database) locktest.Options {
	return locktest.Options{
		Lose:        func(t *testing.T, name string) { t.Helper(); terminate(t, db, name) },
		Waiting:     func(t *testing.T, name string) int { t.Helper(); return waitersFor(t, db, name) },
		Kind:        "session",
		Unsupported: sqllock.WithTTL(time.Minute),
	}
}

// onlyConnectionBusy opens a pool of size 1 whose connection is in use until the test ends.
func onlyConnectionBusy(t *testing.T, db *sqltest.Database) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 1
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	busy, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(busy.Release)
	return pool
}
