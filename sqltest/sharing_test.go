package sqltest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/sqltest"
)

var variables = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "SQLTEST_POSTGRES",
	sqltest.EngineMariaDB:  "SQLTEST_MARIADB",
	sqltest.EngineMySQL:    "SQLTEST_MYSQL",
}

// startable returns an engine whose servers sqltest starts in this run. Servers named by a DSN are not ended by
// sqltest.
func startable(t *testing.T) sqltest.Engine {
	t.Helper()
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMariaDB, sqltest.EngineMySQL} {
		way, _, _ := strings.Cut(os.Getenv(variables[engine]), ":")
		if way == "" || way == "docker" || way == "programs" {
			return engine
		}
	}
	t.Skip("every server is named by a DSN, or skipped")
	return ""
}

func TestProcessesShareAServerWhichEndsWithTheLastOfThem(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	first := newChild(t, engine, temp)
	second := newChild(t, engine, temp)
	server := published(t, engine, temp, first.DSN)
	if other := published(t, engine, temp, second.DSN); other != server {
		t.Errorf("two servers: %s and %s", server, other)
	}
	if first.DSN == second.DSN {
		t.Errorf("one database for two tests: %s", first.DSN)
	}
	first.end(t)
	if !listens(t, server) {
		t.Error("the server ended with the first process")
	}
	third := newChild(t, engine, temp)
	second.end(t)
	if other := published(t, engine, temp, third.DSN); other != server || !listens(t, server) {
		t.Errorf("the server %s of a running process is gone, or was not found (%s)", server, other)
	}
	third.end(t)
	expectNothingLeft(t, temp, server)
}

func TestTheServerEndsWhenItsLastProcessIsKilled(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	c := newChild(t, engine, temp)
	server := published(t, engine, temp, c.DSN)
	c.kill()
	expectNothingLeft(t, temp, server)
}

func TestAKilledProcessThatNobodyCollectsNeedsNoServer(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	c := newChild(t, engine, temp)
	server := published(t, engine, temp, c.DSN)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	expectNothingLeft(t, temp, server)
	_ = c.cmd.Wait()
}

func TestAServerThatIsStillStartingEndsWithItsProcess(t *testing.T) {
	t.Parallel()
	for name, moment := range map[string]string{
		"before it runs": "reaper",
		"as a program":   "pid",
		"as a container": "container",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			engine, temp := startable(t), ownTemp(t)
			c, output := startChild(t, engine, temp)
			answered := make(chan struct{})
			go func() {
				defer close(answered)
				_, _ = output.Read(make([]byte, 1))
			}()
			eventually(t, "a server starts", func() bool {
				select {
				case <-answered: // there is no such moment for this server, or it has passed
					return true
				default:
				}
				for _, dir := range folders(temp) {
					if info, err := os.Stat(filepath.Join(dir, moment)); err == nil && info.Size() > 0 {
						return true
					}
				}
				return false
			})
			c.kill()
			<-answered
			expectNothingLeft(t, temp, "")
		})
	}
}

func TestTheNextRunCleansUpWhenTheReaperWasKilled(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	c := newChild(t, engine, temp)
	left := published(t, engine, temp, c.DSN)
	reapers := processes(t, temp, "reaper.sh")
	if len(reapers) != 1 {
		t.Fatalf("%d reapers", len(reapers))
	}
	for pid := range reapers {
		if err := exec.CommandContext(t.Context(), "kill", "-KILL", pid).Run(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the reaper is dead", func() bool { return len(processes(t, temp, "reaper.sh")) == 0 })
	c.kill()
	if !listens(t, left) {
		t.Fatal("this test wants a server that nobody ends")
	}
	next := newChild(t, engine, temp)
	server := published(t, engine, temp, next.DSN)
	next.end(t)
	expectNothingLeft(t, temp, left)
	expectNothingLeft(t, temp, server)
}

func TestADeadServerIsReplaced(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	first := newChild(t, engine, temp)
	dead := published(t, engine, temp, first.DSN)
	// End the server like the reaper, but keep the record.
	for _, dir := range folders(temp) {
		record, err := os.ReadFile(filepath.Join(dir, "server.json"))
		if err != nil {
			t.Fatal(err)
		}
		script := filepath.Join(dir, "reaper.sh")
		if err := exec.CommandContext(t.Context(), "sh", script, dir, "now").Run(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the server is dead", func() bool { return !listens(t, dead) })
		if err := os.MkdirAll(filepath.Join(dir, "users"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "server.json"), record, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := newChild(t, engine, temp)
	server := published(t, engine, temp, second.DSN)
	if !listens(t, server) {
		t.Error("the second process was given the dead server")
	}
	first.kill()
	second.end(t)
	expectNothingLeft(t, temp, server)
}

func TestTheDatabaseOfAFailedTestIsKeptUntilTheNextRun(t *testing.T) {
	t.Parallel()
	engine, temp := startable(t), ownTemp(t)
	c := newChild(t, engine, temp, "SQLTEST_KEEP=1")
	c.end(t)
	server := published(t, engine, temp, c.DSN)
	eventually(t, "its process is forgotten", func() bool {
		users, _ := filepath.Glob(filepath.Join(temp, "*", "*", "users", "*"))
		return len(users) == 1
	})
	if !reachable(t, engine, c.DSN) {
		t.Fatal("the database was not kept")
	}
	next := newChild(t, engine, temp)
	if other := published(t, engine, temp, next.DSN); other != server {
		t.Errorf("the kept server %s was not taken up, but %s started", server, other)
	}
	if !reachable(t, engine, c.DSN) {
		t.Error("the kept database is gone before its server")
	}
	next.end(t)
	expectNothingLeft(t, temp, server)
}

// published returns where the server of a DSN is published: there nobody listens once it is gone.
func published(t *testing.T, engine sqltest.Engine, temp, dsn string) string {
	t.Helper()
	for _, dir := range folders(temp) {
		text, err := os.ReadFile(filepath.Join(dir, "server.json"))
		if err != nil {
			continue // it is being ended
		}
		var record struct{ DSN, Published string }
		if err := json.Unmarshal(text, &record); err != nil {
			t.Fatal(err)
		}
		if address(t, engine, record.DSN) == address(t, engine, dsn) {
			return record.Published
		}
	}
	t.Fatal("the server has no record")
	return ""
}

func reachable(t *testing.T, engine sqltest.Engine, dsn string) bool {
	t.Helper()
	driver := "mysql"
	if engine == sqltest.EnginePostgres {
		driver = "pgx"
	}
	db, err := sqlx.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	return db.PingContext(t.Context()) == nil
}

func expectNothingLeft(t *testing.T, temp, server string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			left, _ := filepath.Glob(filepath.Join(temp, "*", "*", "*"))
			users, _ := filepath.Glob(filepath.Join(temp, "*", "*", "users", "*"))
			t.Logf("left: %q %q %q", left, users, processes(t, temp))
		}
	}()
	eventually(t, "no folder of a server is left", func() bool { return len(folders(temp)) == 0 })
	eventually(t, "no process of a server is left", func() bool { return len(processes(t, temp)) == 0 })
	if server != "" && listens(t, server) {
		t.Errorf("somebody still listens on %s", server)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	docker := exec.CommandContext(ctx, "docker", "ps", "-aq", "--filter", "label=sqltest.root="+filepath.Join(temp, "sqltest-"+uid()))
	if out, err := docker.Output(); err == nil && len(out) > 0 {
		t.Errorf("containers are left: %s", out)
	}
}
