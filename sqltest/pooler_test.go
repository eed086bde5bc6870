package sqltest_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

func needPgBouncer(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		if _, err := exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("pgbouncer is not installed")
		}
	}
}

func TestAPgBouncerPoolsTransactions(t *testing.T) {
	t.Parallel()
	needPgBouncer(t)
	db := sqltest.Postgres(t)
	mustExec(t, db.DB, "CREATE TABLE goods (n int)")
	tb := newFakeTB(t.Name())
	var pooled *sqltest.Database
	tb.run(func() { pooled = db.PgBouncer(tb, sqltest.Setting("default_pool_size", "1")) })
	if tb.fatal != "" {
		t.Fatal(tb.fatal)
	}
	backend := func(far *sqltest.Database) (pid int) {
		t.Helper()
		conn, err := far.Connx(t.Context()) // stays open until the test ends
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		mustExec(t, conn, "INSERT INTO goods VALUES ($1)", 1)
		if err := conn.GetContext(t.Context(), &pid, "SELECT pg_backend_pid()"); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	if one, two := backend(pooled), backend(pooled); one != two {
		t.Errorf("two clients at the same time have the sessions %d and %d", one, two)
	}
	if got := goods(t, db.DB); got != 2 {
		t.Errorf("%d rows", got)
	}
	tb.end()
	if listens(t, address(t, sqltest.EnginePostgres, pooled.DSN)) {
		t.Error("it has not ended")
	}
	sessions := db.PgBouncer(t, sqltest.Setting("pool_mode", "session"))
	if one, two := backend(sessions), backend(sessions); one == two {
		t.Error("two clients share a session")
	}
}

func TestAPgBouncerKeepsPreparedStatementsIfItCan(t *testing.T) {
	t.Parallel()
	session, none := sqltest.Setting("pool_mode", "session"), sqltest.Setting("max_prepared_statements", "0")
	const byDefault = "pool_mode = transaction|max_prepared_statements = 200"
	for _, test := range []struct {
		of       string
		knows    bool
		opts     []sqltest.Option
		lines    string
		prepared bool
	}{
		{"before 1.21", false, nil, "pool_mode = transaction", false},
		{"before 1.21, by session", false, []sqltest.Option{session}, "pool_mode = transaction|pool_mode = session", true},
		{"since 1.21", true, nil, byDefault, true},
		{"since 1.21, turned off", true, []sqltest.Option{none}, byDefault + "|max_prepared_statements = 0", false},
	} {
		lines, prepared := sqltest.PoolerLines(test.knows, test.opts...)
		if got := strings.Join(lines, "|"); got != test.lines || prepared != test.prepared {
			t.Errorf("%s: %s, prepared statements: %t", test.of, got, prepared)
		}
	}
}

func TestAPgBouncerThatCannotBeHadIsExplained(t *testing.T) {
	needPgBouncer(t)
	t.Setenv("SQLTEST_SKIP", "")
	db := sqltest.Postgres(t)
	for part, opt := range map[string]sqltest.Option{
		"does not listen":    sqltest.Setting("pool_mode", "nonsense"),
		"only option of PgB": sqltest.Version("1.18"),
	} {
		tb := newFakeTB(t.Name())
		tb.run(func() { db.PgBouncer(tb, opt) })
		tb.end()
		if !strings.Contains(tb.fatal, part) {
			t.Errorf("failed with %q; want %q", tb.fatal, part)
		}
	}
	lite, tb := sqltest.SQLite(t), newFakeTB(t.Name())
	tb.run(func() { lite.PgBouncer(tb) })
	if !strings.Contains(tb.fatal, "is for PostgreSQL") {
		t.Errorf("failed with %q", tb.fatal)
	}
}
