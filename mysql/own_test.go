package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// The tests that need a server of their own run on one server, one after the other.
func TestAServerOfOnesOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			const connections = 12 // plus one for an administrator
			srv := sqltest.Start(t, engine, sqltest.Setting("max_connections", fmt.Sprint(connections)))
			t.Logf("server: %s", srv)
			t.Run("counts no client that did not say goodbye", func(t *testing.T) { //nolint:paralleltest // see above
				countsNoAbort(t, srv.Database(t))
			})
			t.Run("may limit the time of statements", func(t *testing.T) { //nolint:paralleltest // see above
				limitsTime(t, srv.Database(t))
			})
			t.Run("becomes read-only", func(t *testing.T) { //nolint:paralleltest // see above
				becomesReadOnly(t, srv.Database(t))
			})
			t.Run("becomes read-only under a wait", func(t *testing.T) { //nolint:paralleltest // see above
				becomesReadOnlyUnderAWait(t, srv.Database(t))
			})
			t.Run("takes only TLS", func(t *testing.T) { //nolint:paralleltest // see above
				takesOnlyTLS(t, srv.Database(t))
			})
			t.Run("goes away", func(t *testing.T) { //nolint:paralleltest // see above
				locktest.GoesAway(t, srv, database{srv.Database(t)})
			})
			t.Run("goes away under waits", func(t *testing.T) { //nolint:paralleltest // see above
				locktest.WaitsOutlast(t, srv, database{srv.Database(t)})
			})
			t.Run("without a free connection is ErrLimit", func(t *testing.T) { //nolint:paralleltest // see above
				locktest.Connections(t, database{srv.Database(t)}, connections+1)
			})
		})
	}
}

func countsNoAbort(t *testing.T, db *sqltest.Database) {
	t.Helper()
	aborted := func() int {
		t.Helper()
		return ask[int](t, db, "SELECT VARIABLE_VALUE FROM "+statusTable(db)+" WHERE VARIABLE_NAME = 'Aborted_clients'")
	}
	before := aborted()
	l := newLocker(t, db)
	mustTry(t, l, "a")
	id := holderOf(t, db, "a")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session has ended", func() bool {
		return ask[int](t, db, "SELECT COUNT(*) FROM "+processes+" WHERE ID = ?", id) == 0
	})
	if after := aborted(); after != before {
		t.Errorf("the server counts %d aborted clients", after-before)
	}
}

// statusTable has the server's counters.
func statusTable(db *sqltest.Database) string {
	if db.Engine == sqltest.EngineMariaDB {
		return "information_schema.GLOBAL_STATUS"
	}
	return "performance_schema.global_status"
}

func limitsTime(t *testing.T, db *sqltest.Database) {
	t.Helper()
	variable, limit := "max_execution_time", "200"
	if db.Engine == sqltest.EngineMariaDB {
		variable, limit = "max_statement_time", "0.2"
	}
	statement(t, db, "SET GLOBAL "+variable+" = "+limit)
	locktest.LeftWhole(t, database{db}, db.DSN, "a")
	statement(t, db, "SET GLOBAL "+variable+" = 0")
}

func becomesReadOnly(t *testing.T, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db)
	lock := mustTry(t, l, "a")
	statement(t, db, "SET GLOBAL read_only = 1")
	mustBeLost(t, lock)
	if !errors.Is(context.Cause(lock.Context()), sqllock.ErrRefused) {
		t.Errorf("the lock ended with %v", context.Cause(lock.Context()))
	}
	_, err := newLocker(t, db).TryAcquire(t.Context(), "a")
	mustSayWhy(t, err, "read-only")
	locktest.OutlastsReadOnly(t, database{db}, func() { statement(t, db, "SET GLOBAL read_only = 0") })
	mustRelease(t, mustTry(t, l, "a"))
	mustRelease(t, mustAcquire(t, newLocker(t, db), "a"))
}

// The wait is in the server's queue when the server becomes read-only, and then nobody holds the lock any more.
func becomesReadOnlyUnderAWait(t *testing.T, db *sqltest.Database) {
	t.Helper()
	holder, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := holder.ExecContext(t.Context(), "DO GET_LOCK(?, 0)", mysql.ServerName(ask[string](t, db, "SELECT DATABASE()"), "a")); err != nil {
		t.Fatal(err)
	}
	again := make(chan error, 1)
	l := newLocker(t, db, mysql.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Retrying && len(again) == 0 {
			again <- e.Err
		}
	}))
	got := make(chan sqllock.Lock, 1)
	go func() {
		lock, err := l.Acquire(t.Context(), "a")
		if err != nil {
			t.Error(err)
		}
		got <- lock
	}()
	waiting := func() bool {
		return ask[int](t, db, "SELECT COUNT(*) FROM "+processes+" WHERE STATE = 'User lock'") == 1
	}
	eventually(t, "the wait is in the server's queue", waiting)
	statement(t, db, "SET GLOBAL read_only = 1")
	if _, err := holder.ExecContext(t.Context(), "DO RELEASE_ALL_LOCKS()"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-got:
		t.Error("a read-only server has granted the lock")
		return
	case err := <-again:
		mustSayWhy(t, err, "read-only")
	}
	statement(t, db, "SET GLOBAL read_only = 0")
	mustRelease(t, <-got)
}

// A client without TLS is not let in until somebody changes something, so a wait does not outlast it.
func takesOnlyTLS(t *testing.T, db *sqltest.Database) {
	t.Helper()
	statement(t, db, "SET GLOBAL require_secure_transport = ON")
	_, err := newLocker(t, db).Acquire(t.Context(), "a")
	statement(t, db, "SET GLOBAL require_secure_transport = OFF")
	if err == nil || sqllock.IsRetryable(err) {
		t.Errorf("Acquire without TLS: %v", err)
	}
}
