package leasetable_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// with returns db's DSN with more parameters.
func with(db *sqltest.Database, parameters string) string {
	if strings.Contains(db.DSN, "?") {
		return db.DSN + "&" + parameters
	}
	return db.DSN + "?" + parameters
}

func open(t *testing.T, driverName, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // whatever it says, the test is over
	return db
}

func TestTheDSNsOddSettingsDoNoHarm(t *testing.T) {
	t.Parallel()
	isolation := map[sqltest.Engine]string{
		sqltest.EngineMySQL:   "transaction_isolation='SERIALIZABLE'",
		sqltest.EngineMariaDB: "tx_isolation='SERIALIZABLE'",
	}
	zone := url.QueryEscape("'+05:00'")
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		dsns := map[string]string{
			"serializable":    with(db, isolation[db.Engine]),
			"no autocommit":   with(db, "autocommit=0"),
			"found rows":      with(db, "clientFoundRows=true&interpolateParams=true"),
			"another zone":    with(db, "time_zone="+zone+"&loc="+url.QueryEscape("America/Caracas")),
			"a zone behind":   with(db, "time_zone="+url.QueryEscape("'-05:00'")),
			"repeatable read": with(db, strings.Replace(isolation[db.Engine], "SERIALIZABLE", "REPEATABLE-READ", 1)),
			"latin1, ANSI":    with(db, "charset=latin1&sql_mode=ANSI"),
			"no parseTime":    strings.ReplaceAll(db.DSN, "parseTime=true", "parseTime=false"),
			"read committed?": with(db, strings.Replace(isolation[db.Engine], "SERIALIZABLE", "READ-UNCOMMITTED", 1)),
		}
		if db.Engine == sqltest.EnginePostgres {
			dsns = map[string]string{
				"serializable":    with(db, "default_transaction_isolation=serializable"),
				"repeatable read": with(db, "default_transaction_isolation=repeatable%20read"),
				"another zone":    with(db, "timezone=Asia/Karachi"),
				"a zone behind":   with(db, "timezone=America/Bogota"),
				"read committed?": with(db, "default_transaction_isolation=read%20uncommitted"),
				"simple protocol": with(db, "default_query_exec_mode=simple_protocol"),
				"exec":            with(db, "default_query_exec_mode=exec"),
			}
		}
		plain := newLocker(t, db.DB)
		for what, dsn := range dsns {
			odd := newLocker(t, open(t, db.DriverName(), dsn))
			lease := take(t, odd, what)
			h := mustBeHeld(t, plain, what)
			if left := time.Until(h.Until); left < 0 || left > time.Minute {
				t.Errorf("%s: a lease of 15 s has %v left", what, left)
			}
			mustBeHeld(t, odd, what)
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			kept := take(t, plain, what)
			mustBeHeld(t, odd, what)
			if kept.Token() != 2 {
				t.Errorf("%s: the second token is %d", what, kept.Token())
			}
			two := leasetable.WithLimit(2)
			first, second := take(t, odd, what+"!", two), take(t, plain, what+"!", two)
			if _, err := odd.TryAcquire(t.Context(), what+"!", two); !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("%s: a third of two: %v", what, err)
			}
			release(t, first, second)
			release(t, take(t, odd, what+"!"))
			mustRise(t, first, second, take(t, odd, what+"!", two))
			if was, err := odd.ForceRelease(t.Context(), what+"!"); err != nil || !was.Held {
				t.Errorf("%s: ForceRelease: %+v, %v", what, was, err)
			}
		}
	})
}

func TestADatabaseThatCannotBeWrittenIsReadOnly(t *testing.T) {
	t.Parallel()
	readOnly := map[sqltest.Engine]string{
		sqltest.EnginePostgres: "default_transaction_read_only=on",
		sqltest.EngineMySQL:    "transaction_read_only=1",
		sqltest.EngineMariaDB:  "tx_read_only=1",
		sqltest.EngineSQLite:   "mode=ro",
	}
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, open(t, db.DriverName(), with(db, readOnly[db.Engine])))
		if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("TryAcquire: %v; want ErrReadOnly", err)
		}
	})
}

func TestMissingTablesAreErrSchemaWithTheCommand(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTables(schema.Tables{Prefix: "missing_"}))
		for _, acquire := range []func(context.Context, string, ...sqllock.Option) (sqllock.Lock, error){l.TryAcquire, l.Acquire} {
			_, err := acquire(t.Context(), "x")
			if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "sqllock schema apply") {
				t.Errorf("without tables: %v", err)
			}
		}
	})
}

func TestTablesMayHaveAnotherPrefix(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		tables := schema.Tables{Prefix: "other_"}
		d, err := schema.DialectOf(db.DriverName())
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Apply(t.Context(), db.DB.DB, d, tables); err != nil {
			t.Fatal(err)
		}
		other := newLocker(t, db.DB, leasetable.WithTables(tables))
		take(t, other, "x")
		take(t, newLocker(t, db.DB), "x") // another table, another lock
		mustBeHeld(t, newLocker(t, db.DB, leasetable.WithTables(tables)), "x")
		release(t, take(t, other, "y", leasetable.WithLimit(2)), take(t, other, "y", leasetable.WithLimit(2)))
		release(t, take(t, other, "y"))
	})
}

func TestTablesMayBeInASchemaThatIsNotSearched(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	tables := schema.Tables{Schema: "apart"}
	run(t, db, "CREATE SCHEMA apart")
	if err := schema.Apply(t.Context(), db.DB.DB, schema.Postgres, tables); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", "nowhere", "public"} {
		l := newLocker(t, open(t, "pgx", with(db, "search_path="+url.QueryEscape(`"`+path+`"`))), leasetable.WithTables(tables))
		lease := take(t, l, "x")
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Commit(), lease.Verify(t.Context())); err != nil {
			t.Errorf("search_path %q: %v", path, err)
		}
		takeAll(t, l, "all", 10)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAServerThatIsNotThereIsRetryable(t *testing.T) {
	t.Parallel()
	for driverName, dsn := range map[string]string{
		"pgx":   "postgres://u:sesame@127.0.0.1:1/d?connect_timeout=5",
		"mysql": "u:sesame@tcp(127.0.0.1:1)/d",
	} {
		_, err := newLocker(t, open(t, driverName, dsn)).TryAcquire(t.Context(), "x")
		if !sqllock.IsRetryable(err) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %v", driverName, err)
		}
	}
}

func TestTheApplicationsPoolIsLeftAlone(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		own := open(t, db.DriverName(), db.DSN)
		own.SetMaxOpenConns(1)
		tx, err := own.BeginTxx(t.Context(), nil) // takes the only connection
		if err != nil {
			t.Fatal(err)
		}
		l := newLocker(t, own)
		held := take(t, l, "x")
		waiter := newLocker(t, own)
		waited := make(chan error, 1)
		go func() {
			lock, err := waiter.Acquire(context.Background(), "x")
			if err == nil {
				err = lock.Release(context.Background())
			}
			waited <- err
		}()
		var one int
		if err := tx.GetContext(t.Context(), &one, "SELECT 1"); err != nil {
			t.Error(err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-waited; err != nil {
			t.Error(err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
		if n := own.Stats().OpenConnections; n != 1 {
			t.Errorf("the application's pool has %d connections", n)
		}
	})
}
