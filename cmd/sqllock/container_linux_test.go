package main

import (
	"os"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// inContainer starts sqllock run as the first process of a container, with a shell script as its command.
func inContainer(t *testing.T, db testPlace, ttl, script string) *process {
	t.Helper()
	container := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	needsRoot(t, "unshare", container...)
	return startAs(t, "unshare", on(t, db.url), append(container,
		binary, "run", "--ttl", ttl, "--kill-after", "1h", "x", "--", "sh", "-c", script)...)
}

func TestInAContainerNothingIsStopped(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	// Of two signals that wait, the one with the lower number comes first: SIGTSTP.
	p := inContainer(t, sqliteFile(t), "1h", `trap "echo changed" WINCH; exec 3<&0; cat <&3 & kill -TSTP 1; kill -WINCH 1; wait; wait`)
	p.expect("changed")
	must(t, p.stdin.Close())
	p.exits(0)
}

// Each replica would have a file of its own, and all of them the lock.
func TestInAContainerADatabaseIsNamed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	container := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	needsRoot(t, "unshare", container...)
	for _, args := range [][]string{{"run", "x", "--", "echo", "ran"}, {"ls"}, {"schema", "apply"}} {
		e := clean(t)
		p := startAs(t, "unshare", e, append(append(container, binary), args...)...)
		p.exits(64, "no database is named", "locks nobody else out")
		if left, err := os.ReadDir(e["HOME"]); err != nil || len(left) > 0 {
			t.Errorf("%q: has left %v, %v", args, left, err)
		}
	}
	p := startAs(t, "unshare", clean(t), append(container, binary, "run", "--db", sqliteFile(t).url, "x", "--", "echo", "ran")...)
	p.expect("ran")
	p.exits(0)
}

func TestInAContainerAnInterruptIsAnExitCode(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	p := inContainer(t, sqliteFile(t), "1h", "kill -INT $$")
	p.exit()
	if code := p.cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d, stderr %s, want 130", code, p.errors())
	}
}

func TestInAContainerOrphansAreReaped(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := inContainer(t, db, "6s", `orphan=$(sh -c 'sleep 1000 >&2 & echo $!'); kill $orphan; while [ -e /proc/$orphan ]; do sleep 0.1; done
		sleep 1000 & echo ready; exec cat`)
	p.expect("ready") // the first orphan has gone
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	p.exits(76, "the command was ended") // the second orphan is not waited for
}

// The first process of this container reaps nobody.
func TestProcessesThatNobodyReapsAreNotWaitedFor(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	container := []string{"--pid", "--fork", "--kill-child", "--mount-proc"}
	needsRoot(t, "unshare", container...)
	db := sqliteFile(t)
	p := startAs(t, "unshare", on(t, db.url), append(container, "sh", "-c",
		`{ "$0" run --ttl 6s --kill-after 1h x -- sh -c 'sleep 1000 & echo ready; exec sleep 1000'; echo code $?; } & exec sleep 1000`, binary)...)
	p.expect("ready")
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	p.expect("code 76")
}
