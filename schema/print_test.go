package schema_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAPlainFileRunByABareClientIsEnough(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		bare(t, db, plain(t, d))
		must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
		bare(t, db, plain(t, d))
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
	})
}

func TestWhatPrintWritesCanBeRunByABareClient(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		tables := schema.Tables{Prefix: "my_"}
		if d == schema.Postgres {
			tables.Schema = "app"
			exec(t, db.DB.DB, "CREATE SCHEMA app")
		}
		var printed strings.Builder
		must(t, schema.Print(&printed, d, tables))
		if strings.Contains(printed.String(), "sqllock_") {
			t.Errorf("a default name is left in\n%s", printed.String())
		}
		bare(t, db, printed.String())
		must(t, schema.Check(t.Context(), db.DB.DB, d, tables))
	})
}

func TestPrintWithDefaultNamesIsTheFile(t *testing.T) {
	t.Parallel()
	for _, d := range []schema.Dialect{schema.Postgres, schema.MySQL, schema.SQLite} {
		var printed strings.Builder
		must(t, schema.Print(&printed, d, schema.Tables{}))
		if printed.String() != plain(t, d) {
			t.Errorf("%s: Print does not write what the files say", d)
		}
	}
}

func TestEveryColumnIsExplainedInTheDatabase(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		query := map[schema.Dialect]string{
			schema.Postgres: `
				SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
				WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0
				AND col_description(c.oid, a.attnum) IS NULL`,
			schema.MySQL: `
				SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns
				WHERE table_schema = DATABASE() AND column_comment = ''`,
			schema.SQLite: `SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE '%--%'`,
		}[d]
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
		var silent []string
		must(t, db.Select(&silent, query))
		if len(silent) > 0 {
			t.Errorf("no comment on %v", silent)
		}
	})
}

// Some tools split a file at each semicolon, even in a text or a comment (golang-migrate with x-multi-statement).
func TestASemicolonOnlyEndsAStatement(t *testing.T) {
	t.Parallel()
	for _, d := range []schema.Dialect{schema.Postgres, schema.MySQL, schema.SQLite} {
		for line := range strings.Lines(plain(t, d)) {
			line = strings.TrimSuffix(line, "\n")
			if strings.Contains(strings.TrimSuffix(line, ";"), ";") || strings.Contains(line, "--") && strings.Contains(line, ";") {
				t.Errorf("%s: a semicolon within %q", d, line)
			}
		}
	}
}
