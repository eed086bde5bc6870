package sqltest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/sqltest"
)

// childVariable makes this test binary act as a small test process: it opens a database of the engine named there,
// reports it, and ends when its input ends.
const childVariable = "SQLTEST_CHILD_ENGINE"

// childTemplate gives the child a copy of a template instead of an empty database. Its value is the key.
const childTemplate = "SQLTEST_CHILD_TEMPLATE"

func TestMain(m *testing.M) {
	if engine := os.Getenv(childVariable); engine != "" {
		childMain(sqltest.Engine(engine))
		return
	}
	goleak.VerifyTestMain(m)
}

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
	return &child{cmd: cmd, input: input}, output
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

// address returns the address of the server that a DSN names.
func address(t *testing.T, engine sqltest.Engine, dsn string) string {
	t.Helper()
	if engine == sqltest.EnginePostgres {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%s:%d", config.Host, config.Port)
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return config.Addr
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// eventually waits for a condition that must soon become true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("still not so: %s", what)
		case <-ticker.C:
		}
	}
}

// ownTemp returns a folder for a state separate from that of this run. When the test ends, all its servers must be
// gone.
func ownTemp(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no shared servers here")
	}
	temp, err := os.MkdirTemp("", "sqltest-own-")
	if err == nil {
		temp, err = filepath.EvalSymlinks(temp)
	}
	if err == nil {
		err = os.Chmod(temp, 0o711) // the server's user must be able to pass through
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	return temp
}

// folders returns the folders of the servers that the state in temp has.
func folders(temp string) []string {
	users, _ := filepath.Glob(filepath.Join(temp, "sqltest-*", "*", "users"))
	for i, dir := range users {
		users[i] = filepath.Dir(dir)
	}
	return users
}

// processes returns the processes whose command line contains all of these texts.
func processes(t *testing.T, of ...string) map[string]string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "ps", "-A", "-o", "pid=", "-o", "args=").Output()
	if err != nil {
		t.Fatalf("ps: %v", err)
	}
	found := map[string]string{}
lines:
	for line := range strings.Lines(string(out)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		for _, text := range of {
			if !strings.Contains(args, text) {
				continue lines
			}
		}
		found[pid] = args
	}
	return found
}

// fakeTB is a test whose failures a real test can observe.
type fakeTB struct {
	name string

	mu       sync.Mutex // guards the fields below
	logs     []string
	fatal    string
	skipped  string
	failed   bool
	cleanups []func()
}

func newFakeTB(name string) *fakeTB { return &fakeTB{name: name} }

// run runs the body of a test to its end, which may be a Fatalf.
func (tb *fakeTB) run(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body()
	}()
	<-done
}

// end runs the cleanups.
func (tb *fakeTB) end() {
	for _, cleanup := range slices.Backward(tb.cleanups) {
		cleanup()
	}
}

func (tb *fakeTB) ending() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.fatal + tb.skipped
}

func (tb *fakeTB) text() string {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return strings.Join(tb.logs, "\n")
}

func (tb *fakeTB) Helper()      {}
func (tb *fakeTB) Name() string { return tb.name }

func (tb *fakeTB) Failed() bool {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	return tb.failed
}

func (tb *fakeTB) Cleanup(f func()) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.cleanups = append(tb.cleanups, f)
}

func (tb *fakeTB) Logf(format string, args ...any) {
	tb.mu.Lock()
	defer tb.mu.Unlock()
	tb.logs = append(tb.logs, fmt.Sprintf(format, args...))
}

func (tb *fakeTB) Fatalf(format string, args ...any) {
	tb.mu.Lock()
	tb.fatal, tb.failed = fmt.Sprintf(format, args...), true
	tb.mu.Unlock()
	runtime.Goexit()
}

func (tb *fakeTB) Skipf(format string, args ...any) {
	tb.mu.Lock()
	tb.skipped = fmt.Sprintf(format, args...)
	tb.mu.Unlock()
	runtime.Goexit()
}
