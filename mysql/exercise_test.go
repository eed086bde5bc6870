package mysql_test

import (
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
			return closing(t)(mysql.FromDB(locktest.BusyPool(t, "mysql", db.DSN), mysql.WithSessionTTL(time.Hour)))
		}, options(db))
	})
}

func options(db *sqltest.Database) locktest.Options {
	return locktest.Options{
		Lose:        func(t *testing.T, name string) { t.Helper(); kill(t, db, name) },
		Waiting:     func(t *testing.T, _ string) int { t.Helper(); return waitersOn(t, db) },
		Unsupported: sqllock.WithTTL(time.Minute),
	}
}
