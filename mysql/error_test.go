package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of another database

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

const secret = "s3cr3t"

func TestErrorsOfConnectingTellNoPassword(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		for name, test := range map[string]struct {
			change    func(*gomysql.Config)
			retryable bool
		}{
			"wrong password":   {func(*gomysql.Config) {}, false},
			"unknown user":     {func(c *gomysql.Config) { c.User = "nobody" }, false},
			"unknown database": {func(c *gomysql.Config) { c.DBName = "nowhere" }, false},
			"closed port":      {func(c *gomysql.Config) { c.Addr = oddserver.FreeAddress(t) }, true},
		} {
			config, err := gomysql.ParseDSN(db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			password := config.Passwd
			config.Passwd = secret
			if name == "unknown database" {
				config.Passwd = password
			}
			test.change(config)
			l := closing(t)(mysql.New(config.FormatDSN()))
			_, err = l.TryAcquire(t.Context(), "a")
			if err == nil || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), password) {
				t.Errorf("%s: the error is %v", name, err)
			}
			if got := sqllock.IsRetryable(err); got != test.retryable {
				t.Errorf("%s: IsRetryable(%v) = %t", name, err, got)
			}
			if _, again := l.Acquire(t.Context(), "a"); again == nil {
				t.Errorf("%s: Acquire: no error", name)
			}
		}
	})
}

func TestAMalformedDSNIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"user:" + secret + "@tcp(host:3306", "user:" + secret + "@host", "user:" + secret + "@tcp(host)/db?timeout=" + secret,
		secret, "user:" + secret + "@tcp(host)/db?parseTime=" + secret,
	} {
		l, err := mysql.New(dsn)
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
	l := closing(t)(mysql.New("user@tcp(" + oddserver.FreeAddress(t) + ")/db"))
	gone := errors.New("the caller has gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	_, err := l.TryAcquire(ctx, "a")
	var unavailable interface{ Retryable() bool }
	if !errors.Is(err, gone) || errors.As(err, &unavailable) {
		t.Errorf("TryAcquire = %v", err)
	}
}

func TestADBOfAnotherDriverIsRefused(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("pgx", "postgres://localhost/any")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := mysql.FromDB(db); err == nil || !strings.Contains(err.Error(), "go-sql-driver/mysql") {
		t.Errorf("FromDB = %v", err)
	}
	if _, err := mysql.FromDB(nil); err == nil {
		t.Error("FromDB(nil): no error")
	}
}
