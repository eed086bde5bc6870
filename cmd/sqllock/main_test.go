package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/commands"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// binary is the program, built once for all tests: with the race detector if the tests have it. raceless is the program
// that users have: without C, as it is released. The race detector makes a start four times as slow, so calls that run to
// their end by themselves (see call), and holders that do nothing else (see held), use raceless.
var binary, raceless string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "act" {
		os.Exit(act(os.Args[2:]))
	}
	hearSignals()
	locktest.MostTestsWait(3)
	os.Exit(testAll(m))
}

// hearSignals undoes what nohup and a background shell job do: every program under test would inherit an ignored
// signal. A caught signal is not inherited: the programs start with its default.
func hearSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

func testAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sqllock-test-")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		binary, raceless = filepath.Join(dir, "sqllock"), filepath.Join(dir, "raceless", "sqllock")
		other := make(chan error, 1)
		go func() { other <- buildAs(raceless, "0") }()
		err = errors.Join(buildAs(binary, cgo, raceFlag, withoutSQLite), <-other)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "build sqllock:", err)
		return 1
	}
	return locktest.RunTests(m, func() error { return goleak.Find() })
}

func buildAs(file, cgo string, flags ...string) error {
	build := exec.CommandContext(context.Background(), "go", slices.Concat([]string{"build", "-o", file}, flags, []string{"."})...)
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// patience bounds every wait of a test: far more than it takes on a busy machine.
const patience = 90 * time.Second

// vainly is how long a program waits for a lock that stays held. It must have time to notice that, on a busy machine,
// too.
const vainly = "6s"

// tellingTTL is the TTL of a lease whose next renewal, after 4 s, is to tell its holder of the loss. A machine that
// stalls then has 6 s to go on before the lock expires instead.
const tellingTTL = "12s"

// process is a running program under test.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr string // a file name
	cancel context.CancelFunc
	exited bool
}

// env has the environment variables of a program, in addition to those of the test.
type env map[string]string

// unset are the environment variables of the tests that programs under test do not inherit.
var unset = []string{"SQLLOCK_DB", "DATABASE_URL"}

// clean returns the environment of a user who has configured nothing.
func clean(t *testing.T) env {
	t.Helper()
	home := t.TempDir()
	return env{"HOME": home, "XDG_STATE_HOME": filepath.Join(home, "state")}
}

// on returns the environment of a user of this database.
func on(t *testing.T, db string) env {
	t.Helper()
	e := clean(t)
	e["SQLLOCK_DB"] = db
	return e
}

// start starts sqllock. At the end of the test it is killed, and on Linux its command, too.
func start(t *testing.T, e env, args ...string) *process {
	t.Helper()
	return startAs(t, binary, e, args...)
}

func startAs(t *testing.T, binary string, e env, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	p := &process{t: t, cmd: exec.CommandContext(ctx, binary, args...), cancel: cancel}
	t.Cleanup(p.stop)
	environ := slices.DeleteFunc(os.Environ(), func(pair string) bool {
		key, _, _ := strings.Cut(pair, "=")
		return slices.Contains(unset, key)
	})
	p.cmd.Env = append(environ, "GORACE=atexit_sleep_ms=0") // otherwise each exit takes a second
	for k, v := range e {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	// A file, not a buffer: otherwise Wait would wait for processes that a command has left running.
	errors, err := os.CreateTemp(t.TempDir(), "stderr")
	must(t, err)
	defer func() { _ = errors.Close() }()
	p.stderr, p.cmd.Stderr = errors.Name(), errors
	r, w, err := os.Pipe()
	must(t, err)
	defer func() { _ = w.Close() }()
	t.Cleanup(func() { _ = r.Close() })
	p.stdout, p.cmd.Stdout = bufio.NewReader(r), w
	p.stdin, err = p.cmd.StdinPipe()
	must(t, err)
	must(t, p.cmd.Start())
	context.AfterFunc(ctx, func() { _ = r.Close() }) // ends a read that waits in vain
	return p
}

func (p *process) stop() {
	p.cancel()
	if !p.exited {
		_ = p.cmd.Wait()
	}
}

// line returns the next line that the program or its command writes.
func (p *process) line() string {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v: waiting for a line: %v; stderr: %s", p.cmd.Args, err, p.errors())
	}
	return strings.TrimSuffix(line, "\n")
}

// expect waits for a line.
func (p *process) expect(want string) {
	p.t.Helper()
	if got := p.line(); got != want {
		p.t.Fatalf("%v wrote %q, want %q; stderr: %s", p.cmd.Args, got, want, p.errors())
	}
}

// rest returns the remaining output. It returns when every process that could write has ended.
func (p *process) rest() []byte {
	p.t.Helper()
	all, err := io.ReadAll(p.stdout)
	must(p.t, err)
	return all
}

// exit waits for the program to end and returns its exit code, as a shell reports it. sqllock dies of SIGINT, and of no
// other signal that it handles.
func (p *process) exit() int {
	p.t.Helper()
	_ = p.cmd.Wait()
	p.exited = true
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGINT {
		return 128 + int(syscall.SIGINT)
	}
	return p.cmd.ProcessState.ExitCode()
}

// exits waits for the program to end with this code, and checks that stderr has all of these texts, or is empty if
// there are none. Messages about waiting for the database, as on a busy machine, do not count.
func (p *process) exits(code int, says ...string) {
	p.t.Helper()
	got, text := p.exit(), waitsForDatabase.ReplaceAllString(p.errors(), "")
	if got != code {
		p.t.Errorf("%v: exit code %d, want %d; stderr: %s", p.cmd.Args, got, code, text)
	}
	if len(says) == 0 && text != "" {
		p.t.Errorf("%v: stderr is not empty: %s", p.cmd.Args, text)
	}
	if len(says) > 0 && (!strings.HasPrefix(text, "sqllock: ") || strings.Count(text, "\n") != 1) {
		p.t.Errorf("%v: stderr is not one line of sqllock's: %s", p.cmd.Args, text)
	}
	for _, part := range says {
		if !strings.Contains(text, part) {
			p.t.Errorf("%v: stderr %q does not say %q", p.cmd.Args, text, part)
		}
	}
}

var waitsForDatabase = regexp.MustCompile("(?m)^sqllock: waiting: the database cannot be used for now: .*did not answer in time.*\n")

func (p *process) errors() string {
	p.t.Helper()
	text, err := os.ReadFile(p.stderr)
	must(p.t, err)
	return string(text)
}

// says waits until a running process has written this to stderr.
func (p *process) says(want string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if !locktest.Poll(ctx, func() bool { return strings.Contains(p.errors(), want) }) {
		p.t.Fatalf("%v: stderr %q does not say %q", p.cmd.Args, p.errors(), want)
	}
}

// call runs sqllock to its end, without input, and expects this exit code. If the database did not answer the only attempt
// of --wait 0 in time, as on a busy machine, another call waits until what the first may have left is over.
func call(t *testing.T, e env, code int, says []string, args ...string) (stdout string) {
	t.Helper()
	p := startAs(t, raceless, e, args...)
	must(t, p.stdin.Close())
	out := p.rest()
	at := slices.Index(args, "--wait") + 1
	if at > 0 && args[at] == "0" && code != exitUnavailable && p.exit() == exitUnavailable && strings.Contains(p.errors(), "did not answer") {
		return call(t, e, code, says, slices.Replace(slices.Clone(args), at, at+1, "40s")...)
	}
	p.exits(code, says...)
	return string(out)
}

// held starts a process that holds a lock until its stdin is closed.
func held(t *testing.T, e env, args ...string) *process {
	t.Helper()
	p := startAs(t, raceless, e, append(append([]string{"run"}, args...), "--", "sh", "-c", "echo held; exec cat")...)
	p.expect("held")
	return p
}

// letGo ends a process that held has started.
func (p *process) letGo() {
	p.t.Helper()
	must(p.t, p.stdin.Close())
	p.exits(0)
}

// runHere runs the program inside the test process.
func runHere(t *testing.T, e env, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	c := &console.Console{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, CompletionTime: time.Minute}
	for k, v := range e {
		c.Environ = append(c.Environ, k+"="+v)
	}
	code, _ = commands.Run(t.Context(), c, args)
	return code, out.String(), errs.String()
}

// testPlace is a database for locks.
type testPlace struct {
	*sqltest.Database
	url string // the value of SQLLOCK_DB
}

var servers = map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
	"PostgreSQL": sqltest.Postgres,
	"MySQL":      sqltest.MySQL,
	"MariaDB":    sqltest.MariaDB,
}

// onServers runs a test with a new, empty database on each server.
func onServers(t *testing.T, test func(t *testing.T, db testPlace)) {
	t.Helper()
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			test(t, testPlace{db, db.DSN})
		})
	}
}

// onEach runs a test like onServers, with the tables of leases, and also with an SQLite file.
func onEach(t *testing.T, test func(t *testing.T, db testPlace)) {
	t.Helper()
	onServers(t, func(t *testing.T, db testPlace) {
		t.Helper()
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		test(t, db)
	})
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, sqliteFile(t))
	})
}

func sqliteFile(t *testing.T) testPlace {
	t.Helper()
	db := sqltest.SQLite(t)
	var file string
	must(t, db.Get(&file, "SELECT file FROM pragma_database_list WHERE name = 'main'"))
	must(t, schema.Apply(t.Context(), db.DB.DB, schema.SQLite, schema.Tables{}))
	return testPlace{db, "sqlite:" + file}
}

// waits returns when the process has its lease row, and so has asked for the lock.
func (p *process) waits(db testPlace) {
	p.t.Helper()
	db.until(p.t, fmt.Sprintf("SELECT COUNT(*) FROM sqllock_lease WHERE pid = %d", p.cmd.Process.Pid))
}

// until runs the query until it returns 1.
func (db testPlace) until(t *testing.T, query string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got := 0
	answers := func() bool {
		if err := db.GetContext(ctx, &got, query); err != nil {
			t.Fatalf("%s: %v; the answer was %d, want 1", query, err, got)
		}
		return got == 1
	}
	if !locktest.Poll(ctx, answers) {
		t.Fatalf("%s: the answer was %d, want 1", query, got)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
