package pg_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAnErrorOfOneHeartbeatCostsNoLock(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	dsn := asRole(t, db)
	locktest.Heartbeat(t, func(t *testing.T, hook func(sqllock.Event), logger *slog.Logger) locktest.Locker {
		t.Helper()
		return closing(t)(pg.New(dsn, pg.WithHook(hook), pg.WithLogger(logger), pg.WithSessionTTL(6*time.Second)))
	}, func(t *testing.T) {
		t.Helper()
		statement(t, db, "REVOKE EXECUTE ON FUNCTION pg_is_in_recovery() FROM PUBLIC")
	}, func(t *testing.T) {
		t.Helper()
		statement(t, db, "GRANT EXECUTE ON FUNCTION pg_is_in_recovery() TO PUBLIC")
	})
}
