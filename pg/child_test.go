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
	"github.com/sqllock/sqllock/sqltest"
)

// The variables that make the test program a process of its own.
const (
	childDSN = "SQLLOCK_TEST_CHILD_DSN"
	childTTL = "SQLLOCK_TEST_CHILD_TTL"
	childJob = "SQLLOCK_TEST_CHILD_JOB" // a locktest.Job, hold shares, race, history or pooled history
	childOld = "SQLLOCK_TEST_CHILD_OLD" // if set, the server is taken for an old one
)

func child() int {
	ttl, _ := time.ParseDuration(os.Getenv(childTTL))
	opts := []pg.Option{pg.WithSessionTTL(ttl), pg.WithOwner("child")}
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

// race says whether a lock was taken twice.
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

// process is another process that holds "the lock".
type process struct {
	*exec.Cmd
	lines *bufio.Scanner
	ask   func()
}

func startHolder(t *testing.T, db *sqltest.Database, ttl time.Duration) process {
	t.Helper()
	p := startProcess(t, db.DSN, ttl, "hold")
	if line := p.line(); line != "held" {
		t.Fatalf("the other process says %q", line)
	}
	return p
}

func startProcess(t *testing.T, dsn string, ttl time.Duration, job string) process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childEnv(dsn, ttl, job)...)
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
	db := sqltest.Postgres(t)
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
}

// The server frees the lock of a process that is stopped for longer than the session TTL, and
// the process learns of it before anything that it does with the lock succeeds.
func TestAStoppedProcessLosesItsLock(t *testing.T) {
	t.Parallel()
	for _, job := range []string{"hold", "hold shares"} {
		t.Run(job, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			holder := startProcess(t, db.DSN, 2*time.Second, job)
			if line := holder.line(); line != "held" {
				t.Fatalf("the other process says %q", line)
			}
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
}
