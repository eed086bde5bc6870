package mysql_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// The server refuses the statements of a user who has exceeded a limit, until the next hour.
func TestAnErrorOfOneHeartbeatCostsNoLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		dsn := limitedUser(t, db, "MAX_QUERIES_PER_HOUR 300")
		wasteful, err := sqlx.Open("mysql", dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer wasteful.Close()
		locktest.Heartbeat(t, database{db}, dsn, func(t *testing.T) {
			t.Helper()
			for err = nil; err == nil; {
				_, err = wasteful.ExecContext(t.Context(), "DO 1")
			}
		}, func(t *testing.T) {
			t.Helper()
			statement(t, db, "FLUSH USER_RESOURCES")
		})
	})
}
