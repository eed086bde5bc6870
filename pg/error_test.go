package pg_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

const secret = "s3cr3t"

func TestErrorsOfConnectingTellNoPassword(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	config, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	at := func(host string, port uint16, user, database string) string {
		return fmt.Sprintf("postgres://%s:%s@%s:%d/%s?sslmode=disable", user, secret, host, port, database)
	}
	closed := strings.TrimPrefix(oddserver.FreeAddress(t), "127.0.0.1:")
	for name, test := range map[string]struct {
		dsn       string
		retryable bool
	}{
		"wrong password": {at(config.Host, config.Port, config.User, config.Database), false},
		"closed port":    {strings.Replace(at("127.0.0.1", 1, config.User, config.Database), ":1/", ":"+closed+"/", 1), true},
	} {
		l := closing(t)(pg.New(test.dsn))
		_, err := l.TryAcquire(t.Context(), "a")
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error contains the password: %v", name, err)
		}
		if got := sqllock.IsRetryable(err); got != test.retryable {
			t.Errorf("%s: IsRetryable(%v) = %t", name, err, got)
		}
		if _, again := l.Acquire(t.Context(), "a"); again == nil {
			t.Errorf("%s: Acquire: no error", name)
		}
	}
}

func TestAMalformedDSNIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"postgres://user:" + secret + "@host:port/db", "postgres://user:" + secret + "@[host/db", "password=" + secret + " port=x",
		"postgres://user:" + secret + "%zz@host/db", "host=h password='" + secret, "postgres://u:" + secret + "@h/d?sslmode=no",
	} {
		l, err := pg.New(dsn)
		if err == nil {
			_ = l.Close()
			t.Errorf("New(%q): no error", dsn)
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("the error contains the password: %v", e)
			}
		}
	}
}

// A dead context sends nothing: not even a connection is opened.
func TestADeadContextDoesNotConnect(t *testing.T) {
	t.Parallel()
	l := closing(t)(pg.New("postgres://user@" + oddserver.FreeAddress(t) + "/db"))
	gone := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err := l.TryAcquire(ctx, "a")
	var unavailable interface{ Retryable() bool }
	if !errors.Is(err, gone) || errors.As(err, &unavailable) {
		t.Errorf("TryAcquire = %v", err)
	}
}

func TestADBOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	connector, err := gomysql.NewConnector(gomysql.NewConfig())
	if err != nil {
		t.Fatal(err)
	}
	config, err := pgxpool.ParseConfig("postgres://nobody@" + oddserver.FreeAddress(t) + "/db")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, test := range map[string]struct {
		db   *sql.DB
		says string
	}{
		"another driver": {sql.OpenDB(connector), "pgx/v5/stdlib"},
		"over a pool":    {stdlib.OpenDBFromPool(pool), "FromPool"},
		"nil":            {nil, "nil"},
	} {
		if _, err := pg.FromDB(test.db); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: FromDB = %v; the error should say %q", name, err, test.says)
		}
		if test.db != nil {
			_ = test.db.Close()
		}
	}
}
