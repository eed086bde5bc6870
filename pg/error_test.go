package pg_test

import (
	"database/sql"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

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
