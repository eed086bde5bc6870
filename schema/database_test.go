package schema_test

import (
	"context"
	"database/sql"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// onEach runs a test on an empty database of each engine.
func onEach(t *testing.T, test func(t *testing.T, db *sqltest.Database, d schema.Dialect)) {
	t.Helper()
	engines := []struct {
		name    string
		open    func(sqltest.TB, ...sqltest.Option) *sqltest.Database
		dialect schema.Dialect
	}{
		{"PostgreSQL", sqltest.Postgres, schema.Postgres},
		{"MySQL", sqltest.MySQL, schema.MySQL},
		{"MariaDB", sqltest.MariaDB, schema.MySQL},
		{"SQLite", sqltest.SQLite, schema.SQLite},
	}
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			t.Parallel()
			db := engine.open(t)
			t.Logf("on %s", db.Server)
			test(t, db, engine.dialect)
		})
	}
}

// again opens the database a second time, with parameters added to its DSN.
func again(t *testing.T, db *sqltest.Database, params map[string]string) *sql.DB {
	t.Helper()
	dsn := db.DSN
	switch db.Engine {
	case sqltest.EnginePostgres, sqltest.EngineSQLite:
		u, err := url.Parse(dsn)
		must(t, err)
		query := u.Query()
		for key, value := range params {
			query.Set(key, value)
		}
		u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx does not decode a plus sign
		dsn = u.String()
	case sqltest.EngineMySQL, sqltest.EngineMariaDB:
		for key, value := range params {
			separator := "?"
			if strings.Contains(dsn, "?") {
				separator = "&"
			}
			dsn += separator + key + "=" + url.QueryEscape(value)
		}
		_, err := mysql.ParseDSN(dsn)
		must(t, err)
	}
	other, err := sql.Open(db.DriverName(), dsn)
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// bare runs SQL all at once, like a client that does not know this package.
func bare(t *testing.T, db *sqltest.Database, text string) {
	t.Helper()
	var params map[string]string
	if db.Engine == sqltest.EngineMySQL || db.Engine == sqltest.EngineMariaDB {
		params = map[string]string{"multiStatements": "true"}
	}
	_, err := again(t, db, params).ExecContext(t.Context(), text)
	must(t, err)
}

func exec(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func apply(ctx context.Context, t *testing.T, db *sql.DB, d schema.Dialect, tables schema.Tables) {
	t.Helper()
	if err := schema.Apply(ctx, db, d, tables); err != nil {
		t.Fatalf("Apply: %v", err)
	}
	if err := schema.Check(ctx, db, d, tables); err != nil {
		t.Fatalf("Check after Apply: %v", err)
	}
}

// plain returns the embedded files of a dialect.
func plain(t *testing.T, d schema.Dialect) string {
	t.Helper()
	var text strings.Builder
	names, err := fs.Glob(schema.Files, "sql/"+string(d)+"/*.sql")
	must(t, err)
	for _, name := range names {
		file, err := fs.ReadFile(schema.Files, name)
		must(t, err)
		text.Write(file)
	}
	return text.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless err contains each of the texts.
func wants(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", texts)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}
