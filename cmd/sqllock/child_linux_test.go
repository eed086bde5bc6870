package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestTheCommandOfAKilledHolderIsKilled(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	holder := held(t, on(t, sqliteFile(t).url), "x") // it waits for the end of its stdin, which does not come
	must(t, holder.cmd.Process.Kill())
	holder.exit()
	holder.rest() // returns only when the command has ended
}

// stops waits until a process is stopped: a signal takes time.
func stops(t *testing.T, pid string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if !locktest.Poll(ctx, func() bool {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		must(t, err)
		return strings.Contains(string(stat), ") T ")
	}) {
		t.Fatal("the command is not stopped")
	}
}

func TestACommandIsStoppedTogetherWithItsHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	p := start(t, on(t, sqliteFile(t).url), "run", "x", "--", "sh", "-c", "echo $$; exec cat")
	pid := p.line()
	for range 2 {
		must(t, p.cmd.Process.Signal(syscall.SIGTSTP))
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		must(t, err)
		if !status.Stopped() {
			t.Fatalf("sqllock is not stopped: %#x", status)
		}
		stops(t, pid)
		must(t, p.cmd.Process.Signal(syscall.SIGCONT))
		_, err = p.stdin.Write([]byte("awake\n"))
		must(t, err)
		p.expect("awake")
	}
	p.letGo()
}

func TestASignalContinuesAStoppedCommand(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		p := start(t, on(t, db.url), "run", "x", "--", "sh", "-c", "ulimit -c 0; echo $$; kill -STOP $$")
		stops(t, p.line())
		must(t, p.cmd.Process.Signal(sig))
		p.exits(128 + int(sig))
	}
}

// Only where the user has put it may a password be visible.
func TestOtherProcessesSeeNoPassword(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	file := sqliteFile(t).url[len("sqlite:"):]
	named := "SQLLOCK_DB='sqlite:" + file + "' # s3cr3t"
	dotenv := t.TempDir() + "/locks.env"
	must(t, os.WriteFile(dotenv, []byte(named), 0o600))
	p := start(t, clean(t), "run", "--db-file", dotenv, "x", "--", "sh", "-c", "env; echo end; exec cat")
	for line := ""; line != "end"; line = p.line() {
		if strings.Contains(line, file) || strings.Contains(line, "s3cr3t") {
			t.Errorf("the command sees %s", line)
		}
	}
	for _, what := range []string{"cmdline", "environ"} {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, what))
		must(t, err)
		if strings.Contains(string(text), file) || strings.Contains(string(text), "s3cr3t") {
			t.Errorf("everybody sees %s", text)
		}
	}
	p.letGo()
}
