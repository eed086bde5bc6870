package sqltest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/sqltest"
)

func TestMain(m *testing.M) {
	if engine := os.Getenv(childVariable); engine != "" {
		childMain(sqltest.Engine(engine))
		return
	}
	os.Exit(runTests(m))
}

// runTests runs all tests. If they succeed, no goroutine may be left. A driver may close a connection in the background,
// and goleak waits for less than half a second, so it is asked for a minute.
func runTests(m *testing.M) (code int) {
	if code = m.Run(); code != 0 {
		return code
	}
	err := goleak.Find()
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "still running after all tests:", err)
		return 1
	}
	return 0
}

// address returns the address of the server that a DSN names.
func address(t *testing.T, engine sqltest.Engine, dsn string) string {
	t.Helper()
	if engine == sqltest.EnginePostgres {
		config, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		return net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	}
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return config.Addr
}

func listens(t *testing.T, address string) bool {
	t.Helper()
	conn, err := (&net.Dialer{Timeout: 30 * time.Second}).DialContext(t.Context(), "tcp", address)
	if err == nil {
		_ = conn.Close()
	}
	return err == nil
}

// eventually waits for a condition that must soon become true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
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

// mustCome waits for the closing of a channel.
func mustCome(t *testing.T, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(2 * time.Minute):
		t.Fatal("waited two minutes for what did not happen")
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
