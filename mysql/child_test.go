package mysql_test

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

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// The variables that make the test program a process of its own.
const (
	childDSN = "SQLLOCK_TEST_CHILD_DSN"
	childTTL = "SQLLOCK_TEST_CHILD_TTL"
	childJob = "SQLLOCK_TEST_CHILD_JOB" // a locktest.Job, or history
)

func child() int {
	ttl, _ := time.ParseDuration(os.Getenv(childTTL))
	l, err := mysql.New(os.Getenv(childDSN), mysql.WithSessionTTL(ttl), mysql.WithOwner("child"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	if job := os.Getenv(childJob); job == historyJob {
		err = history.Serve(context.Background(), l, os.Stdin, os.Stdout)
	} else {
		err = locktest.Job(job).Run(l, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// process is another process that holds "the lock".
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
	ask   func()
}

func startHolder(t *testing.T, db *sqltest.Database, ttl time.Duration) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv(db.DSN, ttl, "hold")...)
	cmd.Stderr = os.Stderr
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	p := process{Cmd: cmd, lines: bufio.NewScanner(out), ask: func() { _, _ = in.Write([]byte("\n")) }}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	if line := p.line(); line != "held" {
		t.Fatalf("the other process says %q", line)
	}
	return p
}

// childEnv makes the test program a child.
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

func TestAKilledProcessFreesItsLockAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		holder := startHolder(t, db, 15*time.Second)
		l := newLocker(t, db)
		mustBeHeld(t, l, "the lock")
		ctx, cancel := bounded(t)
		defer cancel()
		next := waitFor(ctx, t, db, l, "the lock")
		began := time.Now()
		holder.signal(t, syscall.SIGKILL)
		out := <-next
		if out.err != nil {
			t.Fatal(out.err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the waiter had the lock %v after the kill", took)
		}
		mustRelease(t, out.lock)
	})
}

// The server frees the lock of a process that is stopped for longer than the session TTL, and
// the process learns of it before anything that it does with the lock succeeds.
func TestAStoppedProcessLosesItsLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		holder := startHolder(t, db, 3*time.Second)
		l := newLocker(t, db)
		mustBeHeld(t, l, "the lock")
		holder.signal(t, syscall.SIGSTOP)
		next := mustAcquire(t, l, "the lock")

		holder.ask() // answered first thing after it goes on
		holder.signal(t, syscall.SIGCONT)
		if got, want := holder.line(), "lost=true ended=true"; got != want {
			t.Errorf("the stopped process says %q; want %q", got, want)
		}
		mustLive(t, next)
		mustRelease(t, next)
	})
}
