package leasetable_test

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// startWithClock starts a server whose clock can be set: it is started again with a library of this machine's, and reads from a file how
// far it is ahead. For PostgreSQL the library is testdata/clock.c, for the others libfaketime. Without it the test is skipped, and with
// CI=true it fails.
func startWithClock(t *testing.T, engine sqltest.Engine) *clock {
	t.Helper()
	library := faketime
	if engine == sqltest.EnginePostgres {
		library = compileClock
	}
	preloaded := library(t)
	removeShared(t)
	server := sqltest.Start(t, engine)
	c := &clock{server: server, db: server.Database(t)} // which is not connected before it is used
	switch container := strings.Contains(c.db.Server, " from docker image "); {
	case container && engine != sqltest.EngineMySQL && os.Getenv("CI") == "true":
		t.Skip("to save time: another pass has this server as a program")
	case container:
		c.set = restartContainer(t, c, preloaded)
	default:
		c.set = restartProgram(t, c, preloaded)
	}
	return c
}

// faking is the environment of a server with such a clock. A step leaves the monotonic clock alone.
func faking(engine sqltest.Engine, library, file string) []string {
	env := []string{"LD_PRELOAD=" + library}
	if engine == sqltest.EnginePostgres {
		return append(env, "CLOCK_FILE="+file)
	}
	env = append(env,
		"FAKETIME_TIMESTAMP_FILE="+file,
		"FAKETIME_DONT_FAKE_MONOTONIC=1",
		"DONT_FAKE_MONOTONIC=1",
		"FAKETIME_CACHE_DURATION=0", // the one process looks again in the next second
	)
	if engine == sqltest.EngineMySQL {
		// Up to 0.9.12, libfaketime takes deadlines on the monotonic clock for long past, and InnoDB's
		// threads would not wait at all. With this every wait ends after a second.
		env = append(env, "FAKETIME_WAIT_MS=1000")
	}
	return env
}

// compileClock makes the library for PostgreSQL.
func compileClock(t *testing.T) string {
	t.Helper()
	library := filepath.Join(openDir(t), "clock.so")
	out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c").CombinedOutput()
	if err != nil {
		locktest.Impossible(t, fmt.Sprintf("testdata/clock.c cannot be compiled: %v: %s", err, out))
	}
	return library
}

// faketime finds libfaketime.
func faketime(t *testing.T) string {
	t.Helper()
	for _, pattern := range []string{"/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime"} {
		if found, _ := filepath.Glob(pattern + "/libfaketimeMT.so.1"); len(found) > 0 {
			return found[0]
		}
	}
	locktest.Impossible(t, "libfaketime is not installed")
	return ""
}

// restartProgram gives the server's program the environment of the test.
func restartProgram(t *testing.T, c *clock, library string) func(context.Context, time.Duration) error {
	t.Helper()
	file := filepath.Join(openDir(t), "clock")
	set := func(_ context.Context, ahead time.Duration) error { // replaces the file at once
		if err := os.WriteFile(file+".new", []byte(offset(ahead)), 0o644); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}
	if c.db.Engine == sqltest.EnginePostgres {
		set = func(_ context.Context, ahead time.Duration) error { // writes into it: it is mapped
			f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
			if err != nil {
				return err
			}
			_, err = f.WriteString(mapped(ahead))
			return errors.Join(err, f.Close())
		}
	}
	if err := set(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.server.Stop()
	for _, variable := range faking(c.db.Engine, library, file) {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
		defer os.Unsetenv(name) // it is not for the processes of the history
	}
	c.server.Start()
	return set
}

//go:embed testdata/preload.sh
var preload string

// restartContainer replaces the server's program in its container by a script that gives it the
// environment. If the image's C library is too old for the machine's libfaketime, the test is skipped.
func restartContainer(t *testing.T, c *clock, library string) func(context.Context, time.Duration) error {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		locktest.Impossible(t, "the program docker is not installed")
	}
	const copied, file = "/usr/local/lib/libfaketime.so", "/dev/shm/clock"
	ask := func(input string, args ...string) string {
		t.Helper()
		out, err := docker(t.Context(), input, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	_, port, _ := net.SplitHostPort(addressOf(c.db))
	id := ask("", "ps", "-q", "--filter", "publish="+port)
	ask("", "cp", "-L", library, id+":"+copied)
	if c.db.Engine != sqltest.EnginePostgres {
		said, err := docker(t.Context(), "", "exec", "-e", "LD_PRELOAD="+copied, "-e", "FAKETIME=-1d", id, "date", "+%s")
		if s, _ := strconv.ParseInt(said, 10, 64); time.Since(time.Unix(s, 0)).Round(time.Hour) != 24*time.Hour {
			t.Skipf("%s: this machine's libfaketime does not work there: %q, %v", c.db.Server, said, err)
		}
	}
	ask(preload, append([]string{"exec", "-i", "-u", "0", id, "sh", "-es", file}, faking(c.db.Engine, copied, file)...)...)
	c.server.Stop()
	c.server.Start()
	return func(ctx context.Context, ahead time.Duration) error {
		if c.db.Engine == sqltest.EnginePostgres {
			_, err := docker(ctx, mapped(ahead), "exec", "-i", "-u", "0", id, "dd", "of="+file, "bs=8", "count=1", "conv=notrunc")
			return err
		}
		_, err := docker(ctx, offset(ahead), "exec", "-i", "-u", "0", id, "sh", "-ec", `cat >"$0.new" && mv "$0.new" "$0"`, file)
		return err
	}
}

func docker(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdin = strings.NewReader(input)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, &complaint)
	}
	return strings.TrimSpace(string(out)), nil
}

// offset is how libfaketime wants it.
func offset(ahead time.Duration) string { return fmt.Sprintf("%+d\n", int(ahead.Seconds())) }

// mapped is how testdata/clock.c wants it.
func mapped(ahead time.Duration) string {
	return string(binary.LittleEndian.AppendUint64(nil, uint64(int64(ahead.Seconds())<<8|1)))
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
