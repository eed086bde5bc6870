package pg_test

import (
	"database/sql"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/pg"
)

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
		"another driver": {sql.OpenDB(connector), "need version 5 of pgx"}, // that of version 4 has the same name
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

// pgx repeats the connection string in its error, and does not find the password in every form of it.
func TestAConnectionStringThatCannotBeParsedEndsAWaitAndIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"host=h password = s3cret port=abc user=u", "user=u password =s3cret host=h port=x",
		`host=h password='more\' s3cret' port=abc`, "postgres://u:s3cret@127.0.0.1:notaport/x",
	} {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			t.Fatal(err)
		}
		l := closing(t)(pg.FromDB(db))
		_ = db.Close()
		_, err = l.Acquire(t.Context(), "a") // it waits while a database cannot be used temporarily
		if err == nil || sqllock.IsRetryable(err) || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "postgres://user:password@host") {
			t.Errorf("%s: Acquire = %v", dsn, err)
		}
		if _, err := pg.New(dsn); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: New = %v", dsn, err)
		}
	}
	for _, dsn := range []string{
		"postgres://u:/s3cret@h/d", "postgres://u:p@s3cret@h/d", // pgx takes a part of the password for a host
		"postgres://u:p@h/d?application_name=a@b", // as if the password were p@h/d?application_name=a
	} {
		if _, err := pg.New(dsn); err == nil || !strings.Contains(err.Error(), "and any other @, percent-encoded") {
			t.Errorf("%s: New = %v", dsn, err)
		}
	}
}

func TestNoPoolIsNoConnector(t *testing.T) {
	t.Parallel()
	if pg.Connector(nil) != nil {
		t.Error("a nil pool has a connector")
	}
	if _, err := pg.FromConnector(pg.Connector(nil)); err == nil {
		t.Error("FromConnector of none: no error")
	}
}
