package sqltest_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

func TestAUserMayDoWhatWasGrantedAndNoMore(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := engines[engine](t)
			mustExec(t, db.DB, "CREATE TABLE orders (n int)")
			mustExec(t, db.DB, "CREATE TABLE secrets (n int)")
			tb := newFakeTB(t.Name())
			var app *sqltest.Database
			tb.run(func() { app = db.User(tb, "SELECT, INSERT ON orders") })
			if tb.fatal != "" {
				t.Fatal(tb.fatal)
			}
			mustExec(t, app.DB, "INSERT INTO orders VALUES (1)")
			for _, statement := range []string{
				"DELETE FROM orders", "INSERT INTO secrets VALUES (1)", "DROP TABLE orders", "CREATE DATABASE sqltest_no_such", "CREATE TABLE more (n int)",
			} {
				_, major := versionOf(db)
				if engine == sqltest.EnginePostgres && major < "15" && strings.HasPrefix(statement, "CREATE TABLE") {
					continue // there PUBLIC may
				}
				if _, err := app.ExecContext(t.Context(), statement); err == nil {
					t.Errorf("the user may %s", statement)
				}
			}
			network := app.Network(t)
			mustExec(t, openFar(t, app, network), "INSERT INTO orders VALUES (2)")
			var n int
			if err := db.GetContext(t.Context(), &n, "SELECT count(*) FROM orders"); err != nil || n != 2 {
				t.Errorf("%d orders, %v", n, err)
			}
			tb.end()
			if reachable(t, engine, app.DSN) || tb.text() != "" {
				t.Errorf("the user was not dropped: %s", tb.text())
			}
			tb = newFakeTB(t.Name())
			tb.run(func() { db.User(tb, "SELECT ON no_such_table") })
			tb.end()
			if !strings.Contains(tb.fatal, "GRANT SELECT ON no_such_table") {
				t.Errorf("failed with %q", tb.fatal)
			}
		})
	}
}

func TestSQLiteHasNoUsers(t *testing.T) {
	t.Parallel()
	db, tb := sqltest.SQLite(t), newFakeTB(t.Name())
	tb.run(func() { db.User(tb) })
	if !strings.Contains(tb.fatal, "no users") {
		t.Errorf("failed with %q", tb.fatal)
	}
}

// A killed process leaves its user on a server that stays, and the next one drops it.
func TestTheUserOfAKilledProcessIsDropped(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			server := sqltest.Start(t, engine)
			db := server.Database(t)
			temp := ownTemp(t)
			c := newChild(t, engine, temp, variables[engine]+"="+db.DSN, childUser+"=1")
			c.kill()
			count := "SELECT count(*) FROM mysql.user WHERE User LIKE 'sqltest%'"
			if engine == sqltest.EnginePostgres {
				count = "SELECT count(*) FROM pg_roles WHERE rolname LIKE 'sqltest%'"
			}
			left := func() (n int) {
				if err := db.GetContext(t.Context(), &n, count); err != nil {
					t.Fatal(err)
				}
				return n
			}
			if left() != 1 {
				t.Fatal("the process had no user")
			}
			eventually(t, "the user was dropped", func() bool {
				newChild(t, engine, temp, variables[engine]+"="+db.DSN).end(t)
				return left() == 0
			})
		})
	}
}
