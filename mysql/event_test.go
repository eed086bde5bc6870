package mysql_test

import (
	"log/slog"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestWhatHappensToLocksIsTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		locktest.Events(t, func(t *testing.T, hook func(sqllock.Event), logger *slog.Logger) locktest.Locker {
			t.Helper()
			return newLocker(t, db, mysql.WithHook(hook), mysql.WithLogger(logger))
		}, options(db))
	})
}
