package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

// isStopped waits until the program is stopped.
func (p *process) isStopped() {
	p.t.Helper()
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	must(p.t, err)
	if !status.Stopped() {
		p.t.Fatalf("sqllock is not stopped: %#x", status)
	}
}

func TestACommandIsStoppedTogetherWithItsHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	p := start(t, on(t, sqliteFile(t).url), "run", "x", "--", "sh", "-c", "echo $$; exec cat")
	pid := p.line()
	for range 2 {
		must(t, p.cmd.Process.Signal(syscall.SIGTSTP))
		p.isStopped()
		stops(t, pid)
		must(t, p.cmd.Process.Signal(syscall.SIGCONT))
		_, err := p.stdin.Write([]byte("awake\n"))
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

// withoutKill starts sqllock run as root, but without the right to signal other users, as every other user is.
func withoutKill(t *testing.T, db testPlace, command ...string) *process {
	t.Helper()
	needsRoot(t, "setpriv", "--reuid", "65534", "--bounding-set", "-kill")
	return startAs(t, "setpriv", on(t, db.url), append([]string{
		"--bounding-set", "-kill", "--inh-caps", "-kill",
		binary, "run", "--ttl", "6s", "--kill-after", "100ms", "x", "--",
	}, command...)...)
}

func TestACommandOfAnotherUserCannotBeEnded(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := withoutKill(t, db, "setpriv", "--reuid", "65534", "sh", "-c", "trap 'echo usr1; exit 5' USR1; exec 3<&0; cat <&3 & echo $$; wait")
	pid, err := strconv.Atoi(p.line())
	must(t, err)
	_, err = db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	p.says("it runs as another user and cannot be ended")
	must(t, p.cmd.Process.Signal(syscall.SIGTSTP)) // sqllock does not stop, since the command would not
	must(t, syscall.Kill(pid, syscall.SIGUSR1))
	p.expect("usr1")
	must(t, p.stdin.Close())
	if code := p.exit(); code != 76 || strings.Count(p.errors(), "another user") != 1 {
		t.Errorf("exit code %d, stderr %s", code, p.errors())
	}
}

// The script that has started it can be ended.
func TestWhatAScriptHasStartedAsAnotherUserCannotBeEnded(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := withoutKill(t, db, "sh", "-c", "exec 3<&0; setpriv --reuid 65534 sh -c 'echo ready; exec cat <&3' & wait")
	p.expect("ready")
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	p.says("it runs as another user and cannot be ended")
	if code := p.exit(); code != 76 {
		t.Errorf("exit code %d, stderr %s", code, p.errors())
	}
}

// needsRoot ends a test where a program, which needs root's rights, cannot run others.
func needsRoot(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), program, append(args, "true")...).CombinedOutput(); err != nil {
		locktest.Impossible(t, fmt.Sprintf("%s: %v: %s", program, err, out))
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
