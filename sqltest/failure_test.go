package sqltest_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

func TestAFailedTestShowsItsStatementsAndWaits(t *testing.T) {
	t.Parallel()
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			tb := newFakeTB("TestStuck")
			db := opening(t, tb, engines[engine])
			for _, statement := range []string{"CREATE TABLE goods (id int PRIMARY KEY)", "INSERT INTO goods VALUES (1)"} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			tx, err := db.BeginTxx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(t.Context(), "UPDATE goods SET id = 2"); err != nil {
				t.Fatal(err)
			}
			stuck := make(chan struct{})
			go func() {
				defer close(stuck)
				_, _ = db.ExecContext(t.Context(), "DELETE FROM goods WHERE id = 1")
			}()
			show := "SELECT count(*) FROM " + sessionTable + " WHERE db = DATABASE() AND info LIKE 'DELETE%'"
			if engine == sqltest.EnginePostgres {
				show = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
			}
			eventually(t, "the statement waits", func() bool {
				var n int
				return db.GetContext(t.Context(), &n, show) == nil && n == 1
			})
			tb.failed = true
			tb.end()
			<-stuck
			for _, part := range []string{"TestStuck has failed", "DELETE FROM goods", "waits for"} {
				if !strings.Contains(tb.text(), part) {
					t.Errorf("%q is not in: %s", part, tb.text())
				}
			}
		})
	}
}

func TestTheLogHasWhatTheServerHasSaidMeanwhile(t *testing.T) {
	t.Parallel()
	if way, _, _ := strings.Cut(os.Getenv("SQLTEST_POSTGRES"), ":"); way != "" && way != "docker" && way != "programs" {
		t.Skip("the log of a server named by a DSN is not known")
	}
	db := sqltest.Postgres(t)
	if _, err := db.ExecContext(t.Context(), "SELECT 1 / 0 AS nonsense"); err == nil {
		t.Fatal("no error")
	}
	eventually(t, "the error is logged", func() bool {
		log, err := db.Log()
		return err == nil && strings.Contains(log, "nonsense")
	})
	if _, err := sqltest.SQLite(t).Log(); err == nil {
		t.Error("SQLite has a log")
	}
}
