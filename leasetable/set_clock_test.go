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
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// startWithClock starts a server whose clock can be set: it restarts the server with the library of testdata/clock.c,
// which reads from a file how far the clock is ahead. Without a C compiler the test is skipped; with CI=true it fails.
func startWithClock(t *testing.T, engine sqltest.Engine) *clock {
	t.Helper()
	library := compileClock(t)
	server := sqltest.Start(t, engine)
	c := &clock{server: server, db: server.Database(t)} // it connects when it is first used
	switch container := strings.Contains(c.db.Server, " from docker image "); {
	case container && engine != sqltest.EngineMySQL && os.Getenv("CI") == "true":
		t.Skip("to save time: another pass has this server as a program")
	case container:
		c.set = restartContainer(t, c, library)
	default:
		c.set = restartProgram(t, c, library)
	}
	return c
}

// inContainer reports whether the server of an engine is known to run in a container, whose environment is not the test's.
func inContainer(engine sqltest.Engine) bool {
	return strings.HasPrefix(os.Getenv("SQLTEST_"+strings.ToUpper(string(engine))), "docker")
}

func compileClock(t *testing.T) string {
	t.Helper()
	library := filepath.Join(openDir(t), "clock.so")
	out, err := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c").CombinedOutput()
	if err != nil {
		locktest.Impossible(t, fmt.Sprintf("testdata/clock.c cannot be compiled: %v: %s", err, out))
	}
	return library
}

// restartProgram restarts the server's program with the library in its environment.
func restartProgram(t *testing.T, c *clock, library string) func(context.Context, time.Duration) error {
	t.Helper()
	file := filepath.Join(openDir(t), "clock")
	set := func(_ context.Context, ahead time.Duration) error { // writes in place: the file is mapped
		f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE, 0o644)
		if err != nil {
			return err
		}
		_, err = f.WriteString(seconds(ahead))
		return errors.Join(err, f.Close())
	}
	if err := set(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	c.server.Stop()
	for name, value := range map[string]string{"LD_PRELOAD": library, "CLOCK_FILE": file} {
		t.Setenv(name, value)
		defer os.Unsetenv(name) // it is not for the processes of the history
	}
	c.server.Start()
	return set
}

//go:embed testdata/preload.sh
var preload string

// restartContainer replaces the server's program in its container with a script that sets the environment.
func restartContainer(t *testing.T, c *clock, library string) func(context.Context, time.Duration) error {
	t.Helper()
	if _, err := exec.LookPath("docker"); err != nil {
		locktest.Impossible(t, "the program docker is not installed")
	}
	const copied, file = "/usr/local/lib/clock.so", "/dev/shm/clock"
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
	ask(preload, "exec", "-i", "-u", "0", id, "sh", "-es", file, "LD_PRELOAD="+copied, "CLOCK_FILE="+file)
	c.server.Stop()
	c.server.Start()
	return func(ctx context.Context, ahead time.Duration) error {
		_, err := docker(ctx, seconds(ahead), "exec", "-i", "-u", "0", id, "dd", "of="+file, "bs=8", "count=1", "conv=notrunc,nocreat")
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

// seconds is what the file says, as testdata/clock.c reads it.
func seconds(ahead time.Duration) string {
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
