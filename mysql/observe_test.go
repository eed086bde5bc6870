package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func bounded(t *testing.T) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), soon)
}

// eventually asks again and again until done.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited %v until %s", soon, what)
		}
	}
}

// mustBeLost waits until a lock ends and returns how long that took.
func mustBeLost(t *testing.T, lock sqllock.Lock) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-lock.Context().Done():
	case <-time.After(soon):
		t.Fatalf("the holder was not told within %v", soon)
	}
	if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
		t.Fatalf("the lock ended with %v", cause)
	}
	took := time.Since(began)
	if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
		t.Fatalf("Release of a lost lock: %v", err)
	}
	return took
}

func mustLive(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if lock.Context().Err() != nil {
		t.Fatalf("the lock %q has ended: %v", lock.Name(), context.Cause(lock.Context()))
	}
}

// onEach runs a test on MySQL and on MariaDB.
func onEach(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	t.Run("MySQL", func(t *testing.T) {
		t.Parallel()
		test(t, sqltest.MySQL(t))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, sqltest.MariaDB(t))
	})
}

// processes is the table of sessions. MySQL's information_schema.PROCESSLIST fails while any session's statement has a parameter
// that is not UTF-8.
const processes = "/*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */"

// sessionsOn counts the connections to db, without those that it has itself.
func sessionsOn(t *testing.T, db *sqltest.Database) (n int) {
	t.Helper()
	db.SetMaxOpenConns(1)
	return ask[int](t, db, "SELECT COUNT(*) - 1 FROM "+processes+" WHERE DB = DATABASE()")
}

// waitersOn counts the sessions that wait in the server's queues, for whichever lock.
func waitersOn(t *testing.T, db *sqltest.Database) int {
	t.Helper()
	return ask[int](t, db, "SELECT COUNT(*) FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'")
}

// holderOf returns the connection that holds a lock, or 0.
func holderOf(t *testing.T, db *sqltest.Database, name string) int {
	t.Helper()
	return ask[int](t, db, "SELECT COALESCE(IS_USED_LOCK(?), 0)", serverName(t, db, name))
}

func serverName(t *testing.T, db *sqltest.Database, name string) string {
	t.Helper()
	return mysql.ServerName(ask[string](t, db, "SELECT DATABASE()"), name)
}

// kill ends the connection that holds a lock.
func kill(t *testing.T, db *sqltest.Database, name string) {
	t.Helper()
	statement(t, db, fmt.Sprintf("KILL %d", holderOf(t, db, name)))
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
	before := waitersOn(t, db)
	out := make(chan outcome, 1)
	go func() {
		lock, err := l.Acquire(ctx, name)
		out <- outcome{lock, err}
	}()
	eventually(t, "the wait is in the server's queue", func() bool { return waitersOn(t, db) > before })
	return out
}
