package sqltest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/sqllock/sqllock/sqltest"
)

// childVariable makes this test binary act as a small test process: it opens a database of the engine named there,
// reports it, and ends when its input ends.
const childVariable = "SQLTEST_CHILD_ENGINE"

// childTemplate gives the child a copy of a template instead of an empty database. Its value is the key.
const childTemplate = "SQLTEST_CHILD_TEMPLATE"

// childStuck makes the migration of the child report, and then wait until the child's input ends.
const childStuck = "SQLTEST_CHILD_STUCK"

// childUser makes the child also make a user.
const childUser = "SQLTEST_CHILD_USER"

// opened is the report of a child.
type opened struct {
	DSN, Server string
	Failure     string
}

func childMain(engine sqltest.Engine) {
	if os.Getenv(childStorm) != "" {
		stormMain(engine)
		return
	}
	tb := newFakeTB("child")
	var said opened
	tb.run(func() {
		db := childDatabase(tb, engine)
		said.DSN, said.Server = db.DSN, db.Server
		if os.Getenv(childUser) != "" {
			db.User(tb, "SELECT ON "+anything(engine))
		}
	})
	said.Failure = tb.ending()
	_ = json.NewEncoder(os.Stdout).Encode(said)
	_, _ = io.Copy(io.Discard, os.Stdin)
	tb.failed = os.Getenv("SQLTEST_KEEP") != ""
	tb.end()
	fmt.Fprintln(os.Stderr, tb.text())
}

func childDatabase(tb sqltest.TB, engine sqltest.Engine) *sqltest.Database {
	key := os.Getenv(childTemplate)
	if key == "" {
		return engines[engine](tb)
	}
	return copies[engine](sqltest.Migrated(key, func(ctx context.Context, db *sqltest.Database) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE migrated (n int)")
		if os.Getenv(childStuck) != "" {
			_ = json.NewEncoder(os.Stdout).Encode(opened{DSN: db.DSN})
			_, _ = io.Copy(io.Discard, os.Stdin)
		}
		return err
	}), tb)
}

// child is another test process, with its own state in the folder temp.
type child struct {
	opened
	cmd   *exec.Cmd
	input io.Closer
}

func newChild(t *testing.T, engine sqltest.Engine, temp string, env ...string) *child {
	t.Helper()
	c, output := startChild(t, engine, temp, env...)
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &c.opened)
	}
	if err != nil || c.Failure != "" {
		t.Fatalf("child: %v %s", err, c.Failure)
	}
	return c
}

func startChild(t *testing.T, engine sqltest.Engine, temp string, env ...string) (*child, io.Reader) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(engine), "TMPDIR="+temp)
	cmd.Env = append(cmd.Env, env...)
	cmd.Stderr = t.Output()
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, input: input}
	t.Cleanup(c.kill) // if the test did not end it
	return c, output
}

// end lets the child finish like a test process.
func (c *child) end(t *testing.T) {
	t.Helper()
	_ = c.input.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("child: %v", err)
	}
}

// kill kills the child, so it cannot clean up.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// anything returns an object that a right can be granted on.
func anything(engine sqltest.Engine) string {
	if engine == sqltest.EnginePostgres {
		return "pg_class"
	}
	return "*"
}
