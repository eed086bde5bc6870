package sqltest_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

func uid() string { return strconv.Itoa(os.Getuid()) }

// opening opens a database for a fake test, or skips this test if the fake test would be skipped.
func opening(t *testing.T, tb *fakeTB, open func(sqltest.TB, ...sqltest.Option) *sqltest.Database) *sqltest.Database {
	t.Helper()
	var db *sqltest.Database
	tb.run(func() { db = open(tb) })
	switch {
	case tb.skipped != "":
		t.Skip(tb.skipped)
	case tb.fatal != "":
		t.Fatal(tb.fatal)
	}
	return db
}

func TestEveryTestHasAnEmptyDatabaseThatIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	for engine, open := range engines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			first, second := newFakeTB("first"), newFakeTB("second")
			one, two := opening(t, first, open), opening(t, second, open)
			for _, db := range []*sqltest.Database{one, two} {
				if _, err := db.ExecContext(t.Context(), "CREATE TABLE mine (n int)"); err != nil {
					t.Fatalf("not empty, or not writable: %v", err)
				}
				if db.Engine != engine {
					t.Errorf("engine %q", db.Engine)
				}
			}
			again, err := sqlx.ConnectContext(t.Context(), one.DriverName(), one.DSN)
			if err != nil {
				t.Fatalf("the DSN does not open the database: %v", err)
			}
			if _, err := again.ExecContext(t.Context(), "INSERT INTO mine VALUES (1)"); err != nil {
				t.Errorf("the DSN opens another database: %v", err)
			}
			_ = again.Close()

			first.end()
			if logs := first.text(); logs != "" {
				t.Errorf("a clean test has logged: %s", logs)
			}
			if err := one.PingContext(t.Context()); err == nil {
				t.Error("the pool was not closed")
			}
			if engine == sqltest.EngineSQLite {
				file := strings.TrimPrefix(strings.SplitN(one.DSN, "?", 2)[0], "file:")
				if _, err := os.Stat(file); !os.IsNotExist(err) {
					t.Errorf("the file was not removed: %v", err)
				}
			} else {
				// Another test may use the server: then it is dropped in the background.
				eventually(t, "the database was dropped", func() bool { return !reachable(t, engine, one.DSN) })
			}
			if _, err := two.ExecContext(t.Context(), "INSERT INTO mine VALUES (2)"); err != nil {
				t.Errorf("the second test suffers from the end of the first: %v", err)
			}
			second.end()
		})
	}
}

func TestALeakedConnectionIsEndedAndExplained(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			tb := newFakeTB("TestForgetful")
			db := opening(t, tb, engines[engine])
			leaked, err := sqlx.ConnectContext(t.Context(), db.DriverName(), db.DSN)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = leaked.Close() }()
			tx, err := leaked.BeginTxx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "SELECT 1 AS forgotten"); err != nil {
				t.Fatal(err)
			}
			last := "AS forgotten"
			// MySQL's information_schema.PROCESSLIST fails for a parameter that is not UTF-8.
			if engine != sqltest.EnginePostgres {
				last = "SLEEP(600)"
				running := make(chan struct{})
				defer func() { <-running }()
				go func() {
					defer close(running)
					_, _ = tx.ExecContext(t.Context(), "SELECT GET_LOCK(DATABASE(), 0), SLEEP(600), ?", []byte("\x8a$\xfd"))
				}()
				eventually(t, "the statement runs", func() bool {
					var n int
					err := db.GetContext(t.Context(), &n, "SELECT COUNT(IS_USED_LOCK(DATABASE()))")
					return err == nil && n == 1
				})
			}
			tb.end()
			logs := tb.text()
			if !strings.Contains(logs, "TestForgetful") || !strings.Contains(logs, "still open") {
				t.Errorf("not explained: %q", logs)
			}
			if !strings.Contains(logs, last) {
				t.Errorf("the last statement is not named: %q", logs)
			}
			if tb.failed {
				t.Error("the test failed for it")
			}
			if reachable(t, engine, db.DSN) {
				t.Error("the database was not dropped")
			}
		})
	}
}
