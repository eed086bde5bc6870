package pg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
)

// The environment variables that make the test program a child process.
const (
	childDSN = "SQLLOCK_TEST_CHILD_DSN"
	childTTL = "SQLLOCK_TEST_CHILD_TTL"
	childJob = "SQLLOCK_TEST_CHILD_JOB" // a locktest.Job, "hold shares", race, history or "pooled history"
	childOld = "SQLLOCK_TEST_CHILD_OLD" // if set, the Locker treats the server as an old one
)

func child() int {
	ttl, _ := time.ParseDuration(os.Getenv(childTTL))
	opts := []pg.Option{pg.WithSessionTTL(ttl), pg.WithOwner("child"), pg.WithLogger(nil)}
	if os.Getenv(childOld) != "" {
		opts = append(opts, pg.AsBefore14())
	}
	open, job := pg.New, os.Getenv(childJob)
	if job == pooledHistoryJob {
		open = unguarded
	}
	l, err := open(os.Getenv(childDSN), opts...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	switch job {
	case "race":
		err = race(l)
	case "hold shares":
		sharing := optioned{l, func(string) sqllock.Option { return pg.WithShared() }}
		err = locktest.Job("hold").Run(sharing, os.Stdin, os.Stdout)
	case historyJob, pooledHistoryJob:
		err = history.Serve(context.Background(), l, os.Stdin, os.Stdout)
	default:
		err = locktest.Job(job).Run(l, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// race reports whether a lock was acquired twice.
func race(l *pg.Locker) error {
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	lock, err := l.Acquire(ctx, locktest.HeldByChild)
	if err != nil {
		return err
	}
	second, err := l.TryAcquire(ctx, locktest.HeldByChild)
	if second != nil && lock.Context().Err() == nil && second.Context().Err() == nil {
		fmt.Fprintln(os.Stdout, "taken twice")
	} else if errors.Is(err, sqllock.ErrHeld) {
		fmt.Fprintln(os.Stdout, "taken once")
	} else {
		fmt.Fprintln(os.Stdout, "failed:", err)
	}
	return nil
}

// process is a child process.
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func startProcess(t *testing.T, dsn string, ttl time.Duration, job string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv(dsn, ttl, job)...)
	cmd.Stderr = os.Stderr
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := process{Cmd: cmd, lines: bufio.NewScanner(out)}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return p
}

// childEnv returns the environment variables that make the test program a child process.
func childEnv(dsn string, ttl time.Duration, job string) []string {
	return []string{childDSN + "=" + dsn, childTTL + "=" + ttl.String(), childJob + "=" + job}
}

func (p process) line() string {
	p.lines.Scan()
	return strings.TrimSpace(p.lines.Text())
}

func (p process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// This tests a shared lock; locktest tests exclusive locks on every server.
func TestAStoppedProcessLosesItsShare(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	locktest.Stopped(t, newDatabase(t), "hold shares")
}
