package pg_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// The tests that need a server of their own run on one server, one after the other.
func TestAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	const connections = 12
	srv := sqltest.Start(t, sqltest.EnginePostgres, sqltest.Setting("max_connections", fmt.Sprint(connections)), sqltest.Setting("max_prepared_transactions", "1"))
	t.Logf("server: %s", srv)
	t.Run("does not terminate a prepared transaction", func(t *testing.T) { //nolint:paralleltest // see above
		doesNotTerminatePrepared(t, srv.Database(t))
	})
	t.Run("goes away", func(t *testing.T) { //nolint:paralleltest // see above
		locktest.GoesAway(t, srv, database{srv.Database(t)})
	})
	t.Run("goes away under waits", func(t *testing.T) { //nolint:paralleltest // see above
		locktest.WaitsOutlast(t, srv, database{srv.Database(t)})
	})
	t.Run("without a free connection is ErrLimit", func(t *testing.T) { //nolint:paralleltest // see above
		locktest.Connections(t, database{srv.Database(t)}, connections)
	})
}

func doesNotTerminatePrepared(t *testing.T, db *sqltest.Database) {
	t.Helper()
	statement(t, db, "BEGIN; SELECT pg_advisory_xact_lock("+strconv.FormatInt(pg.Key("a"), 10)+"); PREPARE TRANSACTION 'it'")
	l := newLocker(t, db)
	mustBeHeld(t, l, "a")
	if _, ended, err := l.Terminate(t.Context(), "a"); ended || err == nil || !strings.Contains(err.Error(), "ROLLBACK PREPARED") {
		t.Errorf("Terminate: %t, %v", ended, err)
	}
	statement(t, db, "ROLLBACK PREPARED 'it'")
	mustRelease(t, mustTry(t, l, "a"))
}
