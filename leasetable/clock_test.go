package leasetable_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/sqltest"
)

// A clock that is set ahead lets others in before the holder knows, which is forgiven until it
// does; a write that it guarded, or that tokens let through, is not. The clock that is set back is
// set ahead in the end, and by that all leases of the dead are over.
func TestNoStaleHolderWritesWhileTheClockIsSet(t *testing.T) { //nolint:paralleltest // sets the environment
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMariaDB, sqltest.EngineMySQL} { //nolint:paralleltest // see above
		t.Run(string(engine), func(t *testing.T) {
			clock := startWithClock(t, engine)
			c := newContest(t, withTables(t, clock.server.Database(t)))
			c.opts.Kills, c.opts.Stops = 1, 1
			step := func(what string, by time.Duration) {
				c.opts.Others = append(c.opts.Others, history.Harm{
					What: what, Times: 2, Forgive: by > 0,
					Do: func(ctx context.Context, _ string) error { return clock.step(ctx, c.db, by) },
				})
			}
			step("steps of the clock by 1 h", time.Hour)
			step("steps of the clock by -1 h", -time.Hour)
			c.opts.Last = func(ctx context.Context) error { return clock.step(ctx, c.db, clock.highest-clock.ahead+time.Hour) }
			c.run(t)
		})
	}
}

// clock is what a server of the test's own takes for the time.
type clock struct {
	server  *sqltest.Server
	file    string        // says how far it is ahead
	ahead   time.Duration // of the machine's
	highest time.Duration // that it ever was ahead
}

// startWithClock starts a server whose clock can be set. Only programs on this machine can be
// given one; without them, or without libfaketime, the test is skipped, and with CI=true it fails
// without libfaketime.
func startWithClock(t *testing.T, engine sqltest.Engine) *clock {
	t.Helper()
	library := faketime(t)
	oddserver.FromPrograms(t, engine, "the clock of a container is the machine's")
	removeShared(t)
	c := &clock{server: sqltest.Start(t, engine), file: filepath.Join(openDir(t), "clock")}
	if err := c.write(); err != nil {
		t.Fatal(err)
	}
	c.server.Stop()
	environment := map[string]string{
		"LD_PRELOAD":              library,
		"FAKETIME_TIMESTAMP_FILE": c.file,
		"FAKETIME_NO_CACHE":       "1", // all processes of a server see a step at once
		// A step of the clock leaves the monotonic one alone.
		"FAKETIME_DONT_FAKE_MONOTONIC": "1",
		"DONT_FAKE_MONOTONIC":          "1",
	}
	for name, value := range environment {
		t.Setenv(name, value)
	}
	c.server.Start()
	for name := range environment { // it is not for the processes of the history
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func faketime(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime"} {
		if found, _ := filepath.Glob(pattern + "/libfaketimeMT.so.1"); len(found) > 0 {
			return found[0]
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("libfaketime is not installed")
	}
	t.Skip("libfaketime is not installed")
	return ""
}

// openDir makes a folder that the server's user can read.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sqllock-clock-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// removeShared removes, after the test, what libfaketime leaves of servers that are killed: shared
// memory and a semaphore, named by a process that does not run any more.
func removeShared(t *testing.T) {
	t.Helper()
	shared := func() []string {
		found, _ := filepath.Glob("/dev/shm/*faketime_s[eh]m_*")
		return found
	}
	before := shared()
	t.Cleanup(func() {
		for _, file := range shared() {
			pid := file[strings.LastIndex(file, "_")+1:]
			args, _ := os.ReadFile("/proc/" + pid + "/cmdline") // of a dead process, collected or not, there are none
			if len(args) == 0 && !slices.Contains(before, file) {
				_ = os.Remove(file)
			}
		}
	})
}

// step sets the clock, and makes sure that db's server has seen it.
func (c *clock) step(ctx context.Context, db *sqltest.Database, by time.Duration) error {
	c.ahead += by
	c.highest = max(c.highest, c.ahead)
	if err := c.write(); err != nil {
		return err
	}
	now := "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	if db.Engine == sqltest.EnginePostgres {
		now = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	var us int64
	if err := db.GetContext(ctx, &us, now); err != nil {
		return err
	}
	if off := time.Until(time.UnixMicro(us)) - c.ahead; off.Abs() > time.Minute {
		return fmt.Errorf("the server's clock is %v off", off)
	}
	return nil
}

// write replaces the file at once.
func (c *clock) write() error {
	text := fmt.Sprintf("%+d\n", int(c.ahead.Seconds()))
	if err := os.WriteFile(c.file+".new", []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(c.file+".new", c.file)
}
