package pg_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestSessionLocksAreAsEverWhateverTheSettings(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	odd := locktest.OddPostgres().Join(locktest.Odd{
		Alone: []string{
			"default_query_exec_mode=simple_protocol&standard_conforming_strings=off&client_encoding=SQL_ASCII&DateStyle=German",
			"statement_timeout=150&lock_timeout=100&idle_session_timeout=500&default_transaction_isolation=serializable",
		},
		Together: []string{
			"idle_session_timeout=50", "idle_in_transaction_session_timeout=1", "default_transaction_read_only=on&target_session_attrs=any", "client_encoding=SQL_ASCII",
			"client_encoding=LATIN1", "search_path=nowhere", "connect_timeout=20",
			"options=-c search_path=nowhere -c lock_timeout=1 -c default_transaction_read_only=on&target_session_attrs=any",
		},
	}).On(t, db.DB.DB)
	locktest.UnderSettings(t, database{db}, "pgx", odd, func(ctx context.Context, l locktest.SessionLocker) error {
		_, err := l.(shown).List(ctx)
		return err
	})
}

func TestTransactionLocksAreAsEverWhateverTheSettings(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	odd := locktest.OddPostgres().Join(locktest.Odd{Together: []string{
		"default_transaction_read_only=on&target_session_attrs=any", "client_encoding=LATIN1", "search_path=nowhere",
	}}).On(t, db.DB.DB)
	odd.Each(t, db.DSN, func(t *testing.T, dsn, setting string) {
		name := setting + ": \x00\xff'\"\\%_`é☕"
		pool := sqlx.MustOpen("pgx", dsn)
		t.Cleanup(func() { _ = pool.Close() })
		begin := func() *sqlx.Tx {
			tx, err := pool.BeginTxx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			return tx
		}
		plain := newLocker(t, db)
		for _, lock := range []func(context.Context, pg.Tx, string, ...sqllock.Option) error{pg.LockTx, pg.TryLockTx} {
			first, second := begin(), begin()
			if err := lock(t.Context(), pg.SQLTx(first.Tx), name); err != nil {
				t.Fatal(err)
			}
			mustBeHeld(t, plain, name)
			if err := pg.TryLockTx(t.Context(), pg.SQLTx(second.Tx), name); !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("TryLockTx of a lock that is held: %v", err)
			}
			if err := errors.Join(first.Commit(), pg.TryLockTx(t.Context(), pg.SQLTx(second.Tx), name), second.Rollback()); err != nil {
				t.Error(err)
			}
			mustRelease(t, mustTry(t, plain, name))
		}
	})
}

// In an old database everybody may create operators and functions in the schema public. They would run as the user of the
// locks.
func TestNoLockUsesWhatOthersPutIntoTheSearchPath(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Traps(t, db.DB.DB, "sql/probe.sql", "sql/settings.sql", "sql/try.sql", "sql/unlock.sql", "sql/ping.sql")
	for _, opts := range [][]pg.Option{nil, {pg.WithSessionPooling()}} {
		l, other := newLocker(t, db, opts...), newLocker(t, db, opts...)
		lock := mustTry(t, l, "a")
		mustBeHeld(t, other, "a")
		next := make(chan error, 1)
		go func() {
			lock, err := other.Acquire(t.Context(), "a")
			if err == nil {
				err = lock.Release(t.Context())
			}
			next <- err
		}()
		eventually(t, "somebody waits", func() bool {
			info, err := l.Inspect(t.Context(), "a")
			return err == nil && info.Holder.Waiters == 1
		})
		mustRelease(t, lock)
		if err := <-next; err != nil {
			t.Error(err)
		}
		if _, err := l.List(t.Context()); err != nil {
			t.Error(err)
		}
	}
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pg.TryLockTx(t.Context(), pg.SQLTx(tx.Tx), "a"), pg.LockTx(t.Context(), pg.SQLTx(tx.Tx), "b"), tx.Commit()); err != nil {
		t.Error(err)
	}
}

// hostile are settings of which each would harm locks that use the application's settings.
var hostile = locktest.Odd{Alone: []string{
	"lock_timeout=1", "idle_session_timeout=50", "idle_in_transaction_session_timeout=1", "statement_timeout=200",
	"default_transaction_isolation=serializable", "default_transaction_read_only=on", "default_transaction_deferrable=on",
	"client_encoding=SQL_ASCII", "search_path=nowhere", "standard_conforming_strings=off", "client_connection_check_interval=1",
	"DateStyle=SQL, DMY", "bytea_output=escape", "client_min_messages=debug1",
}}

// A DBA sets these for a database or a role. Sessions do not know the origin of such settings.
func TestSettingsOfTheDatabaseAndTheRoleLeaveALockWhole(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"DATABASE", "ROLE"} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			name, dsn := ask[string](t, db, "SELECT current_database()"), db.DSN
			if of == "ROLE" {
				name += "_role"
				statement(t, db, "CREATE ROLE "+name+" LOGIN PASSWORD 'secret'")
				t.Cleanup(func() { _, _ = db.Exec("DROP ROLE " + name) }) //nolint:usetesting // the context of the test has ended
				u := parse(t, dsn)
				u.User = url.UserPassword(name, "secret")
				dsn = u.String()
			}
			for _, setting := range hostile.On(t, db.DB.DB).Alone {
				key, value, _ := strings.Cut(setting, "=")
				statement(t, db, "ALTER "+of+" "+name+" SET "+key+" = '"+value+"'")
			}
			locktest.LeftWhole(t, database{db}, dsn, "a")
		})
	}
}

// This parameter affects only a pool; pg.New creates none.
func TestALimitOfAPoolInTheDSNIsNone(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.LeftWhole(t, database{db}, locktest.WithSetting(db.DSN, "pool_max_conns=1"), "a")
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
		name := ask[string](t, db, "SELECT current_database()") + "_" + strings.ToLower(encoding)
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
