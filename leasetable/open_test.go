package leasetable_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestALockerIsOpenedByADSNAPoolOrAConnector(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		pool, err := sql.Open(db.DriverName(), db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = pool.Close() })
		byDSN, err := leasetable.New(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		byPool, err := leasetable.FromDB(pool)
		if err != nil {
			t.Fatal(err)
		}
		c, err := connector.Of(pool)
		if err != nil {
			t.Fatal(err)
		}
		byConnector, err := leasetable.FromConnector(c)
		if err != nil {
			t.Fatal(err)
		}
		for i, l := range []*leasetable.Locker{byDSN, byPool, byConnector} {
			t.Cleanup(func() { _ = l.Close() })
			if lease := take(t, l, "x"); lease.Token() != int64(i+1) {
				t.Errorf("Locker %d has the token %d", i, lease.Token())
			} else {
				release(t, lease)
			}
		}
		if n := pool.Stats().OpenConnections; n != 0 {
			t.Errorf("%d connections of the pool are open", n)
		}
	})
}

// mysqlForm is the beginning of what the errors list, up to the form that MySQL needs instead of a URL.
const mysqlForm = "it must be postgres://user:password@host:5432/database or keyword=value pairs for PostgreSQL, " +
	"user:password@tcp(host:3306)/database, without mysql://"

func TestADSNThatCannotBeUsedIsAClearErrorWithoutThePassword(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"":                                     "no known form; " + mysqlForm,
		"locks.db":                             "no known form; " + mysqlForm,
		"locks/locks.db":                       "no known form; " + mysqlForm,
		"/var/lib/locks.db":                    "no known form; " + mysqlForm,
		"sqlite:/var/lib/locks.db":             "no known form; " + mysqlForm,
		"sqlite:///var/lib/locks.db":           "no known form; " + mysqlForm,
		"mysql://me:s3cret@host:3306/x":        "no known form; " + mysqlForm,
		"mysql://me:s3cret@tcp(host:3306)/x":   "no known form; " + mysqlForm,
		"mariadb://me:s3cret@host/x":           "no known form; " + mysqlForm,
		"sqlserver://me:s3cret@host/x":         "no known form; " + mysqlForm,
		"me:s3cret@tcp(host/x":                 "no known form; " + mysqlForm,
		"me:s3cret@tcp(host)/x?timeout=s3cret": "cannot parse the DSN; " + mysqlForm,
		"postgres://me:s3cret@host:port/x":     "cannot be parsed",
		"postgres://me:/s3cret@host/x":         "percent-encoded",
		"postgres://me:p@s3cret@host/x":        "percent-encoded",
	} {
		l, err := leasetable.New(dsn)
		if err == nil {
			_, err = l.TryAcquire(t.Context(), "x")
			_ = l.Close()
		}
		if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", dsn, err, want)
		}
	}
	for _, dsn := range []string{
		"me:s3cret@tcp(host:3306)/x", "me:s3/c@r(e)t@tcp(host)/x?parseTime=true", "me@unix(/run/mysqld/mysqld.sock)/x", "tcp/x", "/x", "me@/",
	} {
		l, err := leasetable.New(dsn)
		if err != nil {
			t.Errorf("%s, which MySQL's driver can parse: %v", dsn, err)
			continue
		}
		_ = l.Close()
	}
	if _, err := leasetable.FromDB(nil); err == nil {
		t.Error("a Locker of no *sql.DB")
	}
	if _, err := leasetable.FromConnector(nil); err == nil {
		t.Error("a Locker of no driver.Connector")
	}
}

// wrapping is a driver that wraps another one, as tracing drivers do.
type wrapping struct{ driver.Connector }

func (wrapping) Driver() driver.Driver { return wrappingDriver{} }

type wrappingDriver struct{ driver.Driver }

func TestADriverThatWrapsAnotherIsToldWhatToDo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.SQLite(t))
	c, err := connector.Of(db.DB.DB)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leasetable.FromConnector(wrapping{c}); err == nil || !strings.Contains(err.Error(), "WithDialect") {
		t.Errorf("without a dialect: %v", err)
	}
	l, err := leasetable.FromConnector(wrapping{c}, leasetable.WithDialect(schema.SQLite))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	release(t, take(t, l, "x"))
}

// less is a driver whose connections can do less than those of another.
type less struct {
	driver.Connector
	of func(driver.Conn) driver.Conn
}

func (l less) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return l.of(dc), nil
}

// skipping are the connections of a driver that leaves queries to database/sql.
type skipping struct{ driven }

func (skipping) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return nil, driver.ErrSkip
}

func TestADriverThatCannotQueryDirectlyIsUnsupported(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		c, err := connector.Of(db.DB.DB)
		if err != nil {
			t.Fatal(err)
		}
		for how, of := range map[string]func(driver.Conn) driver.Conn{
			"it has no such method": func(dc driver.Conn) driver.Conn { return struct{ driver.Conn }{dc} },
			"it skips":              func(dc driver.Conn) driver.Conn { return skipping{dc.(driven)} },
		} {
			l, err := leasetable.FromConnector(less{c, of}, leasetable.WithLogger(nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			if _, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrUnsupported) || sqllock.IsRetryable(err) {
				t.Errorf("%s: TryAcquire: %v", how, err)
			}
		}
	})
}

// pgx repeats the connection string in its error, and does not find the password in every form of it.
func TestAConnectionStringThatPgxCannotParseEndsAWaitAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"host=h password = s3cret port=abc user=u", `host=h password='more\' s3cret' port=abc`, "postgres://u:s3cret@127.0.0.1:notaport/x",
	} {
		pool, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		l, err := leasetable.FromDB(pool)
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.Acquire(t.Context(), "x") // it waits while a database cannot be used temporarily
		if err == nil || sqllock.IsRetryable(err) || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "postgres://user:password@host") {
			t.Errorf("%s: Acquire = %v", dsn, err)
		}
		if err := errors.Join(l.Close(), pool.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestAnEmptyTxIsRefused(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.SQLite(t))
	if err := take(t, newLocker(t, db.DB), "x").Guard(t.Context(), leasetable.Tx{}); err == nil || !strings.Contains(err.Error(), "SQLTx") {
		t.Errorf("Guard: %v", err)
	}
}
