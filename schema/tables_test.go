package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestInvalidTablesAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		dialect schema.Dialect
		tables  schema.Tables
		says    string
	}{
		{schema.Postgres, schema.Tables{Prefix: "x; DROP TABLE y; --"}, "only letters, digits and underscores"},
		{schema.Postgres, schema.Tables{Prefix: `a"b`}, "only letters, digits and underscores"},
		{schema.MySQL, schema.Tables{Prefix: "a`b"}, "only letters, digits and underscores"},
		{schema.SQLite, schema.Tables{Prefix: "a b"}, "only letters, digits and underscores"},
		{schema.SQLite, schema.Tables{Prefix: "é_"}, "only letters, digits and underscores"},
		{schema.SQLite, schema.Tables{Prefix: "SQLite_"}, "SQLite keeps names"},
		{schema.Postgres, schema.Tables{Prefix: strings.Repeat("a", 41)}, "41 characters, at most 40"},
		{schema.Postgres, schema.Tables{Schema: "my-app"}, "only letters, digits and underscores"},
		{schema.Postgres, schema.Tables{Schema: "pg_temp"}, "PostgreSQL keeps names"},
		{schema.Postgres, schema.Tables{Schema: strings.Repeat("a", 64)}, "64 characters, at most 63"},
		{schema.MySQL, schema.Tables{Schema: "app"}, "only PostgreSQL has schemas"},
		{schema.SQLite, schema.Tables{Schema: "main"}, "only PostgreSQL has schemas"},
		{"oracle", schema.Tables{}, `unknown dialect "oracle"`},
	} {
		wants(t, test.tables.Validate(test.dialect), test.says)
		wants(t, schema.Print(&strings.Builder{}, test.dialect, test.tables), test.says)
		wants(t, schema.Apply(t.Context(), nil, test.dialect, test.tables), test.says)
		wants(t, schema.Check(t.Context(), nil, test.dialect, test.tables), test.says)
	}
}

func TestTablesWithAnyPrefixLiveSideBySide(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		// "un" and "re" form keywords, 40 is the maximum length, "1" begins with a digit.
		for _, prefix := range []string{"", "un", "re", "1", "Mixed_Case_", strings.Repeat("a", 40)} {
			tables := schema.Tables{Prefix: prefix}
			wants(t, schema.Check(t.Context(), db.DB.DB, d, tables), "lock is missing")
			apply(t.Context(), t, db.DB.DB, d, tables)
			exec(t, db.DB.DB, tables.Rewrite(d, "DELETE FROM sqllock_version"))
			wants(t, schema.Check(t.Context(), db.DB.DB, d, tables), "version 0")
			apply(t.Context(), t, db.DB.DB, d, tables)
		}
	})
}

func TestTablesLiveInTheSchemaNamed(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	for _, tables := range []schema.Tables{{Schema: "App"}, {Schema: "App", Prefix: "jobs_"}} {
		exec(t, db.DB.DB, `CREATE SCHEMA IF NOT EXISTS "App"`)
		apply(t.Context(), t, db.DB.DB, schema.Postgres, tables)
		wants(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{Prefix: tables.Prefix}), "lock is missing")
		exec(t, db.DB.DB, tables.Rewrite(schema.Postgres, "DROP TABLE sqllock_permit"))
		wants(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, tables), "table App.", "_permit is missing", "schema App)")
		apply(t.Context(), t, db.DB.DB, schema.Postgres, tables)
	}
}

func TestASchemaThatDoesNotExistIsNotCreated(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	tables := schema.Tables{Schema: "app"}
	for _, err := range []error{
		schema.Check(t.Context(), db.DB.DB, schema.Postgres, tables),
		schema.Apply(t.Context(), db.DB.DB, schema.Postgres, tables),
	} {
		wants(t, err, `PostgreSQL schema "app" does not exist: create it first (CREATE SCHEMA "app")`)
		if !errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("%v, want ErrSchema", err)
		}
	}

	lost := again(t, db, map[string]string{"search_path": "nowhere"})
	wants(t, schema.Apply(t.Context(), lost, schema.Postgres, schema.Tables{}), "no schema of the search_path exists")
	exec(t, db.DB.DB, "CREATE SCHEMA closed")
	lost = again(t, db, map[string]string{"search_path": "closed", "role": "pg_signal_backend"})
	wants(t, schema.Apply(t.Context(), lost, schema.Postgres, schema.Tables{}), "or this role may not use it", "GRANT USAGE ON SCHEMA")
}

func TestRewriteTouchesNamesOnly(t *testing.T) {
	t.Parallel()
	const statement = "-- sqllock_lock isn't, /* sqllock_lease\n" +
		"SELECT 'sqllock_lock', 'it''s sqllock_lock', \"sqllock_lock\", my_sqllock_lock, sqllock_lock.name, sqllock_\n" +
		"FROM sqllock_lock /* sqllock_lease's */ USE INDEX (sqllock_lock_released_idx), sqllock_locks;"
	for _, test := range []struct {
		dialect schema.Dialect
		tables  schema.Tables
		want    string
	}{
		{schema.Postgres, schema.Tables{}, statement},
		{schema.Postgres, schema.Tables{Prefix: "sqllock_"}, statement},
		{
			schema.Postgres,
			schema.Tables{Prefix: "x_", Schema: "app"},
			"-- x_lock isn't, /* x_lease\n" +
				"SELECT 'sqllock_lock', 'it''s sqllock_lock', \"sqllock_lock\", my_sqllock_lock, \"app\".\"x_lock\".name, sqllock_\n" +
				"FROM \"app\".\"x_lock\" /* x_lease's */ USE INDEX (\"x_lock_released_idx\"), \"x_locks\";",
		},
		{
			schema.MySQL,
			schema.Tables{Prefix: "x_"},
			"-- x_lock isn't, /* x_lease\n" +
				"SELECT 'sqllock_lock', 'it''s sqllock_lock', \"sqllock_lock\", my_sqllock_lock, `x_lock`.name, sqllock_\n" +
				"FROM `x_lock` /* x_lease's */ USE INDEX (`x_lock_released_idx`), `x_locks`;",
		},
	} {
		if got := test.tables.Rewrite(test.dialect, statement); got != test.want {
			t.Errorf("%s, %+v:\n%s\nwant\n%s", test.dialect, test.tables, got, test.want)
		}
	}
}

func TestDialectOf(t *testing.T) {
	t.Parallel()
	for driver, want := range map[string]schema.Dialect{
		"pgx": schema.Postgres, "pgx/v5": schema.Postgres, "postgres": schema.Postgres,
		"mysql": schema.MySQL, "sqlite": schema.SQLite, "sqlite3": schema.SQLite,
	} {
		if got, err := schema.DialectOf(driver); got != want || err != nil {
			t.Errorf("DialectOf(%q) = %q, %v, want %q", driver, got, err, want)
		}
	}
	_, err := schema.DialectOf("godror")
	wants(t, err, fmt.Sprintf("%q", "godror"))
}
