package pg_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Limits that are meant for the application's statements, and are shorter than a wait is.
func TestTimeLimitsOfTheDatabaseDoNotHurt(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	for _, setting := range []string{
		"statement_timeout = '150ms'", "lock_timeout = '100ms'", "idle_in_transaction_session_timeout = '100ms'",
		"idle_session_timeout = '500ms'", "default_transaction_isolation = 'serializable'", "default_transaction_read_only = on",
		"client_min_messages = 'debug1'",
	} {
		name := ask[string](t, db, "SELECT current_database()")
		statement(t, db, "ALTER DATABASE "+name+" SET "+setting)
	}
	holdAndWait(t, newLocker(t, db), newLocker(t, db))
}

func TestTimeLimitsInTheDSNDoNotHurt(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	separator := "?"
	if strings.Contains(db.DSN, "?") {
		separator = "&"
	}
	dsn := db.DSN + separator + "statement_timeout=150&lock_timeout=100&idle_session_timeout=500&default_transaction_isolation=serializable"
	holdAndWait(t, closing(t)(pg.New(dsn)), closing(t)(pg.New(dsn)))
	for _, mode := range []string{"simple_protocol", "exec", "describe_exec", "cache_describe"} {
		dsn := db.DSN + separator + "default_query_exec_mode=" + mode
		holdAndWait(t, closing(t)(pg.New(dsn)), closing(t)(pg.New(dsn)))
	}
}

// holdAndWait holds a lock for longer than the limits of these tests while another waits for it.
func holdAndWait(t *testing.T, holder, waiter sqllock.Locker) {
	t.Helper()
	lock := mustTry(t, holder, "a")
	mustBeHeld(t, waiter, "a")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := waiter.Acquire(ctx, "a"); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sqllock.ErrHeld) {
		t.Fatalf("Acquire of a held lock = %v; want that its context ended", err)
	}
	mustLive(t, lock)
	mustRelease(t, lock)
	mustRelease(t, mustAcquire(t, waiter, "a"))
}

func TestASessionTTLThatIsTooShortIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := pg.New("postgres://localhost/any", pg.WithSessionTTL(time.Second-1)); err == nil {
		t.Error("no error")
	}
}
