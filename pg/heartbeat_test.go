package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAnErrorOfOneHeartbeatCostsNoLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	locktest.Heartbeat(t, database{db}, asRole(t, db), func(t *testing.T) {
		t.Helper()
		statement(t, db, "REVOKE EXECUTE ON FUNCTION pg_is_in_recovery() FROM PUBLIC")
	}, func(t *testing.T) {
		t.Helper()
		statement(t, db, "GRANT EXECUTE ON FUNCTION pg_is_in_recovery() TO PUBLIC")
	})
}
