package sqltest_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// versionOf returns the number in "PostgreSQL 17.6 from …", and its first part.
func versionOf(db *sqltest.Database) (all, major string) {
	all = strings.Fields(db.Server)[1]
	major, _, _ = strings.Cut(all, ".")
	return all, major
}

func TestAVersionIsGivenOrItsLackIsExplained(t *testing.T) {
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			db := engines[engine](t)
			all, major := versionOf(db)
			if got, _ := versionOf(engines[engine](t, sqltest.Version(all[:strings.LastIndex(all, ".")]))); got != all {
				t.Errorf("version %s", got)
			}
			t.Setenv("SQLTEST_SKIP", "")
			t.Setenv(variables[engine], db.DSN)
			if got, _ := versionOf(engines[engine](t, sqltest.Version(major))); got != all {
				t.Errorf("version %s", got)
			}
			tb := newFakeTB(t.Name())
			tb.run(func() { engines[engine](tb, sqltest.Version("1")) })
			tb.end()
			for _, part := range []string{"wants", " 1, but this is", all, variables[engine] + "=docker"} {
				if !strings.Contains(tb.fatal, part) {
					t.Errorf("%q is not in: %s", part, tb.fatal)
				}
			}
		})
	}
}

func TestProgramsOfAnotherVersionAreNotUsed(t *testing.T) {
	t.Setenv("SQLTEST_SKIP", "")
	t.Setenv("SQLTEST_POSTGRES", "programs")
	tb := newFakeTB(t.Name())
	tb.run(func() { sqltest.Postgres(tb, sqltest.Version("9.1")) })
	tb.end()
	if !strings.Contains(tb.fatal, "wants PostgreSQL 9.1") && !strings.Contains(tb.fatal, "no postgres and initdb in") {
		t.Errorf("failed with: %s", tb.fatal)
	}
}

func TestAVersionIsTheTagOfAnImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"postgres:17":                       "postgres:16",
		"postgres":                          "postgres:16",
		"postgres:17.2-alpine":              "postgres:16-alpine",
		"localhost:5000/some/postgres":      "localhost:5000/some/postgres:16",
		"localhost:5000/some/postgres:17.2": "localhost:5000/some/postgres:16",
		"postgres:latest":                   "postgres:16",
		"postgres:17@sha256:0123":           "postgres:17@sha256:0123",
	} {
		if got := sqltest.OfVersion(image, "16"); got != want {
			t.Errorf("%s: %s; want %s", image, got, want)
		}
	}
}

// timeouts are settings that every session has, with a value that is nobody's default.
var timeouts = map[sqltest.Engine]struct{ name, value, show, want string }{
	sqltest.EnginePostgres: {"lock_timeout", "12345ms", "SHOW lock_timeout", "12345ms"},
	sqltest.EngineMySQL:    {"innodb_lock_wait_timeout", "77", "SELECT @@innodb_lock_wait_timeout", "77"},
	sqltest.EngineMariaDB:  {"innodb_lock_wait_timeout", "77", "SELECT @@innodb_lock_wait_timeout", "77"},
	sqltest.EngineSQLite:   {"busy_timeout", "77", "PRAGMA busy_timeout", "77"},
}

func TestASettingIsOneOfItsDatabase(t *testing.T) {
	t.Parallel()
	for engine, setting := range timeouts {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			for _, open := range []func(opts ...sqltest.Option) *sqltest.Database{
				func(opts ...sqltest.Option) *sqltest.Database { return engines[engine](t, opts...) },
				func(opts ...sqltest.Option) *sqltest.Database {
					return copies[engine](sqltest.Migrated("option", nothing), t, opts...)
				},
			} {
				special, plain := open(sqltest.Setting(setting.name, setting.value)), open()
				for db, is := range map[*sqltest.Database]bool{special: true, plain: false} {
					var got string
					if err := db.GetContext(t.Context(), &got, setting.show); err != nil || (got == setting.want) != is {
						t.Errorf("%s = %s, %v", setting.name, got, err)
					}
				}
			}
			for name, value := range map[string]string{"no_such_setting": "1", `it's "quoted"`: "'"} {
				tb := newFakeTB(t.Name())
				tb.run(func() { engines[engine](tb, sqltest.Setting(name, value)) })
				tb.end()
				if tb.fatal == "" && engine != sqltest.EngineSQLite { // which ignores a pragma that it does not know
					t.Errorf("the setting %s: no failure", name)
				}
			}
		})
	}
}

func TestASettingMayBeText(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		db := engines[engine](t, sqltest.Setting("sql_mode", "ANSI_QUOTES,NO_ZERO_DATE"))
		var got string
		if err := db.GetContext(t.Context(), &got, `SELECT @@sql_mode`); err != nil || got != "ANSI_QUOTES,NO_ZERO_DATE" {
			t.Errorf("sql_mode = %q, %v", got, err)
		}
	}
}

func TestAnExtensionIsMade(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t, sqltest.Extension("plpgsql"), sqltest.Extension("pg_trgm"))
	var n int
	if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM pg_extension WHERE extname = 'pg_trgm'"); err != nil || n != 1 {
		t.Errorf("%d extensions, %v", n, err)
	}
	for engine, part := range map[sqltest.Engine]string{
		sqltest.EnginePostgres: "name an image that has it", sqltest.EngineMySQL: "only PostgreSQL", sqltest.EngineSQLite: "leave out",
	} {
		tb := newFakeTB(t.Name())
		tb.run(func() { engines[engine](tb, sqltest.Extension("no such")) })
		tb.end()
		if tb.skipped == "" && !strings.Contains(tb.fatal, part) {
			t.Errorf("%s: failed with %q", engine, tb.fatal)
		}
	}
}

func TestAnOptionThatMeansNothingThereIsRefused(t *testing.T) {
	t.Parallel()
	engine := startable(t)
	server := sqltest.Start(t, engine)
	for part, use := range map[string]func(tb sqltest.TB){
		"pass Version to Start":           func(tb sqltest.TB) { server.Database(tb, sqltest.Version("1")) },
		"pass Extension to Server.Databa": func(tb sqltest.TB) { sqltest.Start(tb, engine, sqltest.Extension("pg_trgm")) },
		"SQLite has the version":          func(tb sqltest.TB) { sqltest.SQLite(tb, sqltest.Version("3")) },
	} {
		tb := newFakeTB(t.Name())
		tb.run(func() { use(tb) })
		tb.end()
		if !strings.Contains(tb.fatal, part) {
			t.Errorf("failed with %q; want %q", tb.fatal, part)
		}
	}
}

func nothing(context.Context, *sqltest.Database) error { return nil }
