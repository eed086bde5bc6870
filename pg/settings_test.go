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
	"github.com/sqllock/sqllock/internal/locktest"
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
	locktest.LeftWhole(t, database{db}, db.DSN, "a")
}

func TestTimeLimitsInTheDSNDoNotHurt(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	separator := "?"
	if strings.Contains(db.DSN, "?") {
		separator = "&"
	}
	locktest.LeftWhole(t, database{db},
		db.DSN+separator+"statement_timeout=150&lock_timeout=100&idle_session_timeout=500&default_transaction_isolation=serializable", "a")
}

func TestAnOptionOutOfRangeIsAnError(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]pg.Option{
		"a session TTL that is too short":       pg.WithSessionTTL(time.Second - 1),
		"a negative number of connections":      pg.WithMaxConnections(-1),
		"no connection":                         pg.WithMaxConnections(0),
		"one connection, and none to wait on":   pg.WithMaxConnections(1),
		"more connections than a server can be": pg.WithMaxConnections(1001),
	} {
		if _, err := pg.New("postgres://localhost/any", option); err == nil {
			t.Errorf("%s: no error", name)
		}
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
	locktest.OncePerEngine(t)
	const ttl = 5 * time.Second
	db := sqltest.Postgres(t)
	lock := mustTry(t, newLocker(t, db), "x")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := waitFor(ctx, t, db, newLocker(t, db, pg.WithSessionTTL(ttl)), "x")
	time.AfterFunc(3*ttl, cancel)
	if out := <-waiting; !errors.Is(out.err, sqllock.ErrHeld) || !errors.Is(out.err, context.Canceled) {
		t.Errorf("a wait of three session TTLs: %v", out.err)
	}
	mustRelease(t, lock)
}
