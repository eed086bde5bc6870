package pg_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
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

// PgBouncer's error has the code of others that pass.
func TestAParameterThatAPoolerDoesNotKnowEndsAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	dsn := startBouncer(t, sqltest.Postgres(t), "session")
	for _, parameter := range []string{"statement_timeout", "search_path"} {
		l := closing(t)(pg.New(dsn+"&"+parameter+"=1", pg.WithSessionPooling()))
		ctx, cancel := bounded(t)
		defer cancel()
		if _, err := l.Acquire(ctx, "a"); err == nil || ctx.Err() != nil || sqllock.IsRetryable(err) || !strings.Contains(err.Error(), parameter) {
			t.Errorf("with %s, Acquire = %v", parameter, err)
		}
	}
}

func startBouncer(t *testing.T, db *sqltest.Database, mode string, settings ...string) string {
	t.Helper()
	return locktest.StartBouncer(t, db.DSN, mode, settings...)
}
