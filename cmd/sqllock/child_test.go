//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
)

// stubborn is a command that ignores SIGTERM and has a child that ignores it, too. The child also keeps their stdout
// open.
const stubborn = `trap "" TERM; exec 3<&0; cat <&3 & echo ready; wait`

func TestALostLeaseEndsTheCommandAndWhatItStarted(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		p := start(t, on(t, db.url), "run", "--ttl", "6s", "--kill-after", "100ms", "x", "--", "sh", "-c", stubborn)
		p.expect("ready")
		_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
		must(t, err)
		p.exits(76, "the command was ended") // lost, or expired if the machine stalled until then
		p.rest()                             // returns only when no process is left
	})
}

func TestALostSessionEndsTheCommandAndWhatItStarted(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		p := start(t, on(t, db.url), "run", "--kind", "session", "--kill-after", "100ms", "x", "--", "sh", "-c", stubborn)
		p.expect("ready")
		if db.Engine == "postgres" {
			_, err := db.ExecContext(t.Context(), `
				SELECT pg_terminate_backend(pid) FROM pg_stat_activity
				WHERE datname = current_database() AND application_name LIKE 'sqllock/%'`)
			must(t, err)
		} else {
			var name string
			var id int
			must(t, db.Get(&name, "SELECT DATABASE()"))
			must(t, db.Get(&id, "SELECT IS_USED_LOCK(?)", mysql.ServerName(name, "x")))
			_, err := db.ExecContext(t.Context(), fmt.Sprint("KILL ", id))
			must(t, err)
		}
		p.exits(76, `lock "x": the command was ended`, "lock was lost")
		p.rest()
	})
}

// The kernel kills one process when memory is short, not those that it has started.
func TestWhatAKilledCommandStartedIsEndedBeforeTheRelease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	for _, test := range []struct{ killAfter, trap, says string }{
		{"100ms", "", ""}, // it ignores SIGTERM
		{"1h", "echo ended; exit", "ended\n"},
	} {
		script := `exec 3<&0; { trap "$0" TERM; cat <&3 & kill -KILL $$; wait; wait; echo "works on"; } & wait`
		p := start(t, on(t, db.url), "run", "--kill-after", test.killAfter, "x", "--", "sh", "-c", script, test.trap)
		p.exits(128 + int(syscall.SIGKILL))
		if got := string(p.rest()); got != test.says {
			t.Errorf("what it started wrote %q, want %q", got, test.says)
		}
		call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")
	}
}

func TestALostLockLetsTheCommandEndByItself(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := start(t, on(t, db.url), "run", "--ttl", "6s", "--kill-after", "1h", "x", "--", os.Args[0], "act", "5", "1")
	p.expect("ready")
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	p.expect("terminated")
	p.exits(76, "the command was ended") // lost, or expired if the machine stalled until then
}

func TestALossThatOnlyTheReleaseSeesIsALoss(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	for script, test := range map[string]struct {
		code int
		says string
	}{
		"echo ready; read x":         {76, "the command has succeeded, but it is not confirmed that it had the lock until its end"},
		"echo ready; read x; exit 4": {4, "lock was lost"},
	} {
		p := start(t, on(t, db.url), "run", "--ttl", "1h", "x", "--", "sh", "-c", script)
		p.expect("ready")
		_, err := db.ExecContext(t.Context(), "UPDATE sqllock_lock SET token = token + 1")
		must(t, err)
		_, err = p.stdin.Write([]byte("\n"))
		must(t, err)
		p.exits(test.code, test.says)
		_, err = db.ExecContext(t.Context(), "UPDATE sqllock_lock SET lease_id = NULL")
		must(t, err)
	}
}

func TestSignalsAreTheCommands(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		p := start(t, on(t, db.url), "run", "x", "--", os.Args[0], "act", "7", "2")
		p.expect("ready")
		for range 2 {
			must(t, p.cmd.Process.Signal(sig))
			p.expect(sig.String())
		}
		p.exits(7)

		p = start(t, on(t, db.url), "run", "x", "--", "sh", "-c", "ulimit -c 0; echo ready; exec cat")
		p.expect("ready")
		must(t, p.cmd.Process.Signal(sig))
		p.exits(128 + int(sig))
		call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")
	}
}

func TestSqllockDiesOfSIGINT(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	interrupted := func(p *process) {
		t.Helper()
		must(t, p.cmd.Process.Signal(syscall.SIGINT))
		p.exit()
		if status := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != syscall.SIGINT {
			t.Errorf("%v: %v, want its death by SIGINT", p.cmd.Args, p.cmd.ProcessState)
		}
	}
	p := start(t, on(t, db.url), "run", "x", "--", "sh", "-c", "echo ready; exec cat")
	p.expect("ready")
	waiter := start(t, on(t, db.url), "run", "x", "--", "true")
	waiter.waits(db)
	interrupted(waiter)
	interrupted(p)
	call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")

	// A command that handles SIGINT has not died of it.
	p = start(t, on(t, db.url), "run", "x", "--", os.Args[0], "act", "130", "1")
	p.expect("ready")
	must(t, p.cmd.Process.Signal(syscall.SIGINT))
	p.exit()
	if p.cmd.ProcessState.ExitCode() != 130 {
		t.Errorf("%v, want exit code 130", p.cmd.ProcessState)
	}
}

func TestAChangedWindowIsTheCommands(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	p := start(t, on(t, sqliteFile(t).url), "run", "x", "--", "sh", "-c", `trap "echo changed" WINCH; exec 3<&0; cat <&3 >&2 & echo ready; wait`)
	p.expect("ready")
	must(t, p.cmd.Process.Signal(syscall.SIGWINCH))
	p.expect("changed")
	must(t, p.stdin.Close())
	p.exit()
}

// The reader of sqllock's output has ended.
func TestSqllockIsNotEndedByWhatItCannotSay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	holder := held(t, on(t, db.url), "x")
	r, w, err := os.Pipe()
	must(t, err)
	must(t, r.Close())
	defer func() { _ = w.Close() }()
	cmd := exec.CommandContext(t.Context(), binary, "run", "--db", db.url, "--wait", "0", "x", "--", "true")
	cmd.Stderr = w
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 75 {
		t.Errorf("%v, want exit code 75", err)
	}
	holder.letGo()
	p := start(t, on(t, db.url), "run", "x", "--", "sh", "-c", "kill -PIPE $$") // SIGPIPE still ends the command
	p.exits(128 + int(syscall.SIGPIPE))
}

func TestSignalsReachWhatTheCommandStarted(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	p := start(t, on(t, sqliteFile(t).url), "run", "x", "--", "sh", "-c", `"$0" act 0 1; exit 8`, os.Args[0])
	p.expect("ready")
	must(t, p.cmd.Process.Signal(syscall.SIGHUP)) // SIGHUP ends the shell, too
	p.exits(128 + int(syscall.SIGHUP))
	if got := string(p.rest()); got != "hangup\n" {
		t.Errorf("the grandchild wrote %q, want the signal", got)
	}
}

func TestAnIgnoredSignalStaysIgnored(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	// Like nohup.
	p := start(t, on(t, db.url), "run", "outer", "--", "sh", "-c", `trap "" HUP; echo $$; exec "$0" run x -- sh -c 'echo ready; cat; echo done'`, binary)
	var pid int
	_, err := fmt.Sscan(p.line(), &pid)
	must(t, err)
	p.expect("ready")
	must(t, syscall.Kill(pid, syscall.SIGHUP))
	must(t, p.stdin.Close())
	p.expect("done")
	p.exits(0)
}

func TestASignalEndsTheWaitForTheLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		holder := held(t, on(t, db.url), "x")
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
			p := start(t, on(t, db.url), "run", "x", "--", "echo", "not run")
			p.waits(db)
			must(t, p.cmd.Process.Signal(sig))
			p.exits(128+int(sig), "ended by a signal", sig.String())
			if got := p.rest(); len(got) > 0 {
				t.Errorf("the command ran and wrote %q", got)
			}
		}
		holder.letGo()
		call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")
	})
}

func TestASignalEndsTheWaitForASessionLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := servers["PostgreSQL"](t)
	holder := held(t, on(t, db.DSN), "--kind", "session", "x")
	p := start(t, on(t, db.DSN), "run", "--kind", "session", "x", "--", "echo", "not run")
	testPlace{Database: db}.until(t, `SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.exits(128+15, "ended by a signal")
	holder.letGo()
	call(t, on(t, db.DSN), 0, nil, "run", "--kind", "session", "--wait", "0", "x", "--", "true")
}

func TestAKilledHolderLetsTheNextIn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	kill := func(t *testing.T, db testPlace, flags ...string) {
		t.Helper()
		e := on(t, db.url)
		holder := held(t, e, append([]string{"x", "--ttl", "1h"}, flags...)...)
		call(t, e, 75, []string{"is held"}, append([]string{"run", "--wait", "0", "x"}, append(flags, "--", "true")...)...)
		waiter := start(t, e, append([]string{"run", "x"}, append(flags, "--", "echo", "mine")...)...)
		must(t, holder.cmd.Process.Kill())
		holder.exit()
		if len(flags) == 0 { // as if the hour had passed; the server itself frees a session lock
			waiter.waits(db)
			db.expire(t, holder)
		}
		waiter.expect("mine")
		waiter.exits(0)
	}
	onEach(t, func(t *testing.T, db testPlace) {
		t.Helper()
		kill(t, db)
		if db.Engine != "sqlite" {
			kill(t, db, "--kind", "session")
		}
	})
}
