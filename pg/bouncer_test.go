package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// In transaction mode two clients can hold the same lock. In session mode they cannot, but nothing distinguishes the
// modes, and the lock survives a client if the pooler keeps its session. I49.
func TestAPoolerInBetweenIsRefused(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"transaction", "session", "statement"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			dsn := startBouncer(t, db, mode)
			mustRefuse(t, closing(t)(pg.New(dsn)), "pooler")
			if n := locksOn(t, db); n != 0 {
				t.Errorf("%d locks are held after a refusal", n)
			}
		})
	}
}

func startBouncer(t *testing.T, db *sqltest.Database, mode string, settings ...string) string {
	t.Helper()
	return locktest.StartBouncer(t, db.DSN, mode, settings...)
}
