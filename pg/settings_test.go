package pg_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strconv"
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

func TestTheEncodingOfTheDatabaseDoesNotMatter(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		name := "sqltest_" + strings.ToLower(encoding) + "_" + strconv.Itoa(os.Getpid())
		statement(t, db, "CREATE DATABASE "+name+" ENCODING '"+encoding+"' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
		u, err := url.Parse(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		u.Path = "/" + name
		l := closing(t)(pg.New(u.String(), pg.WithOwner("café")))
		mustRelease(t, mustTry(t, l, "☕"))
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		statement(t, db, "DROP DATABASE "+name)
	}
}

func TestAWaitOutlastsAShortSessionTTL(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	holder := newLocker(t, db)
	lock := mustTry(t, holder, "x")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := newLocker(t, db, pg.WithSessionTTL(time.Second)).Acquire(ctx, "x")
	if !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wait of three session TTLs: %v", err)
	}
	mustRelease(t, lock)
}
