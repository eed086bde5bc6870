package mysql_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocks(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		t.Logf("server: %s", db.Server)
		locktest.Exercise(t, func(t *testing.T) locktest.Locker {
			t.Helper()
			return newLocker(t, db)
		}, options(db))
	})
}

func TestSessionLocksFromADB(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		locktest.Exercise(t, func(t *testing.T) locktest.Locker {
			t.Helper()
			return closing(t)(mysql.FromDB(busyDB(t, db)))
		}, options(db))
	})
}

func TestACounterThatOnlyTheLockGuardsIsExact(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		locktest.Counter(t, db.DB.DB, func(t *testing.T) locktest.Locker {
			t.Helper()
			return newLocker(t, db)
		})
	})
}

func options(db *sqltest.Database) locktest.Options {
	return locktest.Options{
		Lose:        func(t *testing.T, name string) { t.Helper(); kill(t, db, name) },
		Waiting:     func(t *testing.T, _ string) int { t.Helper(); return waitersOn(t, db) },
		Unsupported: sqllock.WithTTL(time.Minute),
	}
}

// busyDB is a *sql.DB of size 1 whose connection is in a transaction until the test ends.
func busyDB(t *testing.T, db *sqltest.Database) *sql.DB {
	t.Helper()
	small, err := sql.Open("mysql", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = small.Close() })
	small.SetMaxOpenConns(1)
	tx, err := small.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return small
}
