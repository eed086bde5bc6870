package pg_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func bounded(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), soon)
}

// sessionsOn counts the connections of Lockers to db.
func sessionsOn(t *testing.T, db *sqltest.Database) (n int) {
	t.Helper()
	return ask[int](t, db, `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE 'sqllock/%'`)
}

// waitersFor counts the sessions that wait in the server's queue for a lock.
func waitersFor(t *testing.T, db *sqltest.Database, name string) int {
	t.Helper()
	return ask[int](t, db, inLocks("count(*)", "NOT l.granted"), pg.Key(name)) +
		ask[int](t, db, strings.ReplaceAll(inLocks("count(*)", "NOT l.granted"), "$1::bigint", "hashtextextended($1::bigint::text, 1)"), pg.Key(name)) // at the gate
}

// locksOn counts the sessions that hold or wait for any lock in db.
func locksOn(t *testing.T, db *sqltest.Database) int {
	t.Helper()
	return ask[int](t, db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

// holderOf returns the backend that holds a lock, or 0.
func holderOf(t *testing.T, db *sqltest.Database, name string) int {
	t.Helper()
	return ask[int](t, db, "SELECT COALESCE(("+inLocks("l.pid", "l.granted")+"), 0)", pg.Key(name))
}

func inLocks(what, which string) string {
	return "SELECT " + what + ` FROM pg_locks l WHERE l.locktype = 'advisory' AND l.objsubid = 1
		AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND l.classid::bigint = ($1::bigint >> 32) & 4294967295
		AND l.objid::bigint = $1::bigint & 4294967295 AND ` + which
}

// terminate ends the backend that holds a lock.
func terminate(t *testing.T, db *sqltest.Database, name string) {
	t.Helper()
	if !ask[bool](t, db, "SELECT pg_terminate_backend($1)", holderOf(t, db, name)) {
		t.Fatal("the backend was not terminated")
	}
}

func ask[T any](t *testing.T, db *sqltest.Database, query string, args ...any) (answer T) {
	t.Helper()
	if err := db.GetContext(t.Context(), &answer, query, args...); err != nil {
		t.Fatal(err)
	}
	return answer
}

func statement(t *testing.T, db *sqltest.Database, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}

type outcome struct {
	lock sqllock.Lock
	err  error
}

// waitFor acquires in another goroutine, and returns when the wait is in the server's queue.
func waitFor(ctx context.Context, t *testing.T, db *sqltest.Database, l sqllock.Locker, name string) <-chan outcome {
	t.Helper()
	before := waitersFor(t, db, name)
	out := make(chan outcome, 1)
	go func() {
		lock, err := l.Acquire(ctx, name)
		out <- outcome{lock, err}
	}()
	eventually(t, "the wait is in the server's queue", func() bool { return waitersFor(t, db, name) > before })
	return out
}
