package sqltest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// openIn sets the environment, so its tests are not parallel.

func openIn(t *testing.T, open func(sqltest.TB, ...sqltest.Option) *sqltest.Database, variable, value string) *fakeTB {
	t.Helper()
	t.Setenv(variable, value)
	tb := newFakeTB(t.Name())
	tb.run(func() { open(tb) })
	tb.end()
	return tb
}

func TestAMissingServerNamesTheThreeWaysToGetOne(t *testing.T) {
	t.Setenv("TMPDIR", ownTemp(t))
	t.Setenv("SQLTEST_SKIP", "")
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	t.Setenv("PATH", "/nonexistent")
	nowhere := filepath.Join(t.TempDir(), "nowhere")
	for name, c := range map[string]struct { //nolint:paralleltest // sets the environment
		engine sqltest.Engine
		value  string
		tried  string
	}{
		"programs that are not there": {sqltest.EnginePostgres, "programs:" + nowhere, nowhere},
		"no MariaDB in that folder":   {sqltest.EngineMariaDB, "programs:" + nowhere, nowhere},
		"Docker does not answer":      {sqltest.EngineMySQL, "docker", "docker does not answer"},
		"nobody listens there":        {sqltest.EnginePostgres, "postgres://u:pw@127.0.0.1:1/x", "refused"},
		"no name of a way":            {sqltest.EnginePostgres, "docker:sqltest/none:such", "docker does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			tb := openIn(t, engines[c.engine], variables[c.engine], c.value)
			for _, part := range []string{c.tried, variables[c.engine] + "=docker", variables[c.engine] + "=programs", "server that runs already", "SQLTEST_SKIP=1"} {
				if !strings.Contains(tb.fatal, part) {
					t.Errorf("%q is not in: %s", part, tb.fatal)
				}
			}
			if tb := openIn(t, engines[c.engine], "SQLTEST_SKIP", "1"); tb.skipped == "" || tb.fatal != "" {
				t.Errorf("SQLTEST_SKIP: skipped %q, failed %q", tb.skipped, tb.fatal)
			}
		})
	}
}

func TestAnEngineCanBeLeftOut(t *testing.T) { //nolint:paralleltest // sets the environment
	for engine, variable := range variables {
		if tb := openIn(t, engines[engine], variable, "skip"); !strings.Contains(tb.skipped, variable) {
			t.Errorf("%s=skip: skipped %q, failed %q", variable, tb.skipped, tb.fatal)
		}
	}
	if tb := openIn(t, sqltest.SQLite, "SQLTEST_SQLITE", "skip"); !strings.Contains(tb.skipped, "SQLTEST_SQLITE") {
		t.Errorf("SQLTEST_SQLITE=skip: skipped %q, failed %q", tb.skipped, tb.fatal)
	}
}

func TestThePasswordOfAGivenDSNIsNeverShown(t *testing.T) {
	t.Setenv("SQLTEST_SKIP", "")
	for _, c := range []struct {
		engine sqltest.Engine
		dsn    string
	}{
		{sqltest.EnginePostgres, "postgres://me:geh%40eim-geheim@127.0.0.1:1/db"},
		{sqltest.EnginePostgres, "postgres://me@127.0.0.1:1/db?password=geheim"},
		{sqltest.EnginePostgres, "host=127.0.0.1 port=1 user=me password=geheim"},
		{sqltest.EnginePostgres, "host=127.0.0.1 port=1 user=me password='ge heim'"},
		{sqltest.EnginePostgres, `host=127.0.0.1 port=1 user=me password=ge\'heim`},
		{sqltest.EnginePostgres, "postgres://me:geheim@127.0.0.1:port/db"},
		{sqltest.EnginePostgres, "postgrs//me:geheim@127.0.0.1:1/db"},
		{sqltest.EngineMySQL, "me:geheim@tcp(127.0.0.1:1)/"},
		{sqltest.EngineMySQL, "me:geheim@tcp(127.0.0.1:1"},
		{sqltest.EngineMariaDB, "mysql://me:geheim@127.0.0.1:1/db"},
		{sqltest.EngineMariaDB, "mysql://me:ge%2Fheim@127.0.0.1:1/db"},
	} {
		tb := openIn(t, engines[c.engine], variables[c.engine], c.dsn)
		if tb.fatal == "" {
			t.Errorf("%s: no failure", c.dsn)
		}
		if said := tb.fatal + tb.text(); strings.Contains(said, "heim") {
			t.Errorf("shown: %s", said)
		}
	}
}

func TestAPasswordIsHiddenAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		engine          sqltest.Engine
		dsn, text, want string
	}{
		// The password is a word that stands everywhere.
		{
			sqltest.EnginePostgres, "postgres://postgres:test@localhost/postgres",
			"test TestA: migrate --url=postgres://postgres:test@localhost/sqltest_build_1: PGPASSWORD=test",
			"test TestA: migrate --url=postgres://postgres:xxxxx@localhost/sqltest_build_1: PGPASSWORD=xxxxx",
		},
		{
			sqltest.EnginePostgres, "postgres://postgres:postgres@localhost/postgres",
			"the role postgres: postgres://postgres:postgres@localhost/postgres", "the role postgres: postgres://postgres:xxxxx@localhost/postgres",
		},
		{
			sqltest.EnginePostgres, "host=template user=me password=template",
			"sqltest_template_1 on template: password=template", "sqltest_template_1 on template: password=xxxxx",
		},
		{sqltest.EngineMySQL, "root:test@tcp(h:1)/", "test root:test@tcp(h:1)/sqltest_1", "test root:xxxxx@tcp(h:1)/sqltest_1"},
		// It is not.
		{sqltest.EnginePostgres, "postgres://me:geh%40eimnis@h/db", "it was geh@eimnis, or geh%40eimnis", "it was xxxxx, or xxxxx"},
		{sqltest.EngineMariaDB, "me:geheimnis@tcp(h:1)/", "-pgeheimnis", "-pxxxxx"},
		// No text contains it in this spelling, except the DSN.
		{sqltest.EnginePostgres, `host=h password=ge\'heim`, `(host=h password=ge\'heim)`, "(xxxxx)"},
	} {
		if got := sqltest.Redact(c.engine, c.dsn, c.text); got != c.want {
			t.Errorf("%s; want %s", got, c.want)
		}
	}
	for dsn, want := range map[string]string{
		"postgres://postgres:test@localhost/sqltest_keep_1": "postgres://postgres:xxxxx@localhost/sqltest_keep_1",
		"postgres://me@localhost/me?password=me":            "postgres://me@localhost/me?password=xxxxx",
		"user=me password='me' dbname=me":                   "user=me password='xxxxx' dbname=me",
		"user=me password = me":                             "xxxxx",
		"postgres://me:%6De@localhost/me":                   "xxxxx",
	} {
		if got := sqltest.PublicDSN(sqltest.EnginePostgres, dsn); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

func TestAServerNamedByADSNIsUsed(t *testing.T) {
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			given := engines[engine](t)
			t.Setenv(variables[engine], given.DSN)
			db := engines[engine](t)
			if !strings.HasSuffix(db.Server, "from the server named by "+variables[engine]) {
				t.Errorf("server: %s", db.Server)
			}
			if want, got := address(t, engine, given.DSN), address(t, engine, db.DSN); got != want || db.DSN == given.DSN {
				t.Errorf("%s is not another database of %s", db.DSN, given.DSN)
			}
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE t (n int)"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAProcessWhoseLockWasLostLocksItAgain(t *testing.T) {
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			admin := sqltest.Start(t, engine).Database(t)
			t.Setenv(variables[engine], admin.DSN)
			db := engines[engine](t)
			locker, kill := "SELECT pid FROM pg_locks WHERE locktype = 'advisory'", "SELECT pg_terminate_backend(%d)"
			if engine != sqltest.EnginePostgres {
				var name string
				if err := db.GetContext(t.Context(), &name, "SELECT DATABASE()"); err != nil {
					t.Fatal(err)
				}
				locker, kill = "SELECT IS_USED_LOCK('sqltest_"+strings.Split(name, "_")[2]+"')", "KILL %d"
			}
			var first, next int // the sessions that have the lock of this process
			if err := admin.GetContext(t.Context(), &first, locker); err != nil {
				t.Fatal(err)
			}
			mustExec(t, admin.DB, fmt.Sprintf(kill, first))
			eventually(t, "another session has the lock", func() bool {
				engines[engine](t)
				return admin.GetContext(t.Context(), &next, locker) == nil && next != first
			})
		})
	}
}

func TestMariaDBIsNotTakenForMySQL(t *testing.T) { //nolint:paralleltest // sets the environment
	given := sqltest.MariaDB(t)
	tb := openIn(t, sqltest.MySQL, "SQLTEST_MYSQL", given.DSN)
	if !strings.Contains(tb.fatal, "wanted MySQL, but this is MariaDB") {
		t.Errorf("failed with %q", tb.fatal)
	}
}

func TestAStateFolderOfSomebodyElseIsRefused(t *testing.T) {
	temp := ownTemp(t)
	engine := startable(t)
	t.Setenv("SQLTEST_SKIP", "")
	t.Setenv("TMPDIR", temp)
	if err := os.Symlink(t.TempDir(), filepath.Join(temp, "sqltest-"+uid())); err != nil {
		t.Fatal(err)
	}
	tb := openIn(t, engines[engine], variables[engine], os.Getenv(variables[engine]))
	if !strings.Contains(tb.fatal, "must be a folder that belongs to this user") {
		t.Errorf("failed with %q", tb.fatal)
	}
}
