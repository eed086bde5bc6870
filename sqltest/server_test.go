package sqltest_test

import (
	"context"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

var serverEngines = []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB}

func TestAnOwnServerKeepsItsAddressAndDataWhateverHappensToIt(t *testing.T) {
	t.Parallel()
	template := sqltest.SQLFiles(fstest.MapFS{"1.sql": {Data: []byte("CREATE TABLE goods (n int PRIMARY KEY)")}})
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			begin := time.Now()
			server := sqltest.Start(t, engine, sqltest.Setting("max_connections", "20"))
			t.Logf("%s: started in %v", server, time.Since(begin))
			db := server.Database(t)
			query := "SELECT @@max_connections"
			if engine == sqltest.EnginePostgres {
				query = "SELECT current_setting('max_connections')::int"
			}
			var connections int
			if err := db.GetContext(t.Context(), &connections, query); err != nil || connections != 20 {
				t.Errorf("the setting is not used: max_connections is %d, %v", connections, err)
			}
			for range 3 {
				if _, err := template.On(t, server).ExecContext(t.Context(), "INSERT INTO goods VALUES (1)"); err != nil {
					t.Error(err)
				}
				// If somebody drops the template, it is made again.
				for _, name := range databases(t, engine, db) {
					if strings.HasPrefix(name, "sqltest_template_") {
						if _, err := db.ExecContext(t.Context(), "DROP DATABASE "+name); err != nil {
							t.Error(err)
						}
					}
				}
			}

			count := func(want int) {
				t.Helper()
				var got int
				if err := db.GetContext(t.Context(), &got, "SELECT count(*) FROM remembered"); err != nil || got != want {
					t.Fatalf("%d rows, %v; want %d", got, err, want)
				}
			}
			do := func(statement string) {
				t.Helper()
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			// The server may have closed a pooled connection.
			db.SetMaxIdleConns(0)

			step := func(name string, do func()) {
				begin := time.Now()
				do()
				t.Logf("%s: %v", name, time.Since(begin))
			}

			do("CREATE TABLE remembered (n int)")
			do("INSERT INTO remembered VALUES (1)")
			step("stop", server.Stop)
			if err := db.PingContext(t.Context()); err == nil {
				t.Fatal("a stopped server answers")
			}
			step("start", server.Start)
			count(1)

			do("INSERT INTO remembered VALUES (2)")
			step("kill", server.Kill)
			if err := db.PingContext(t.Context()); err == nil {
				t.Fatal("a killed server answers")
			}
			step("start", server.Start)
			count(2)

			step("pause", server.Pause)
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			if err := db.PingContext(ctx); err == nil {
				t.Fatal("a paused server answers")
			}
			step("resume", server.Resume)
			count(2)

			server.Pause()
			step("kill", server.Kill)
			step("start", server.Start)
			count(2)

			server.Pause() // the end of the test must not wait for it
		})
	}
}

func TestTheClockOfAServerIsStepped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux")
	}
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler")
	}
	for _, engine := range serverEngines {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			server := sqltest.Start(t, engine)
			db := server.Database(t)
			mustExec(t, db.DB, "CREATE TABLE remembered (n int)")
			query := "SELECT UNIX_TIMESTAMP()"
			if engine == sqltest.EnginePostgres {
				query = "SELECT extract(epoch FROM clock_timestamp())::bigint"
			}
			ahead := func(want time.Duration) {
				t.Helper()
				var now int64
				db.SetMaxIdleConns(0) // the server was restarted
				if err := db.GetContext(t.Context(), &now, query); err != nil {
					t.Fatal(err)
				}
				if got := time.Until(time.Unix(now, 0)); (got - want).Abs() > time.Minute {
					t.Errorf("the clock is %v ahead; want %v", got, want)
				}
			}
			server.StepClock(time.Hour)
			ahead(time.Hour)
			server.StepClock(-3 * time.Hour)
			ahead(-2 * time.Hour)
			server.Kill()
			server.Start()
			ahead(-2 * time.Hour)
			server.StepClock(2 * time.Hour)
			ahead(0)
			mustExec(t, db.DB, "INSERT INTO remembered VALUES (1)")
		})
	}
}
