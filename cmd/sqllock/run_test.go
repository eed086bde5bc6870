package main

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/commands"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/locktest"
)

func TestRunNeedsNoDatabase(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := clean(t)
	folder := filepath.Join(e["XDG_STATE_HOME"], "sqllock")
	says := []string{"no database is named", filepath.Join(folder, "sqllock.db")}
	if out := call(t, e, 0, says, "run", "hello", "--", "echo", "hi"); out != "hi\n" {
		t.Errorf("wrote %q, want hi", out)
	}
	info, err := os.Stat(folder)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v, want 0700", info.Mode().Perm())
	}
	_, err = os.Stat(filepath.Join(folder, "sqllock.db"))
	must(t, err)
}

// A user who may read a file may lock it, and so keep all leases from being renewed.
func TestAnSQLiteFileIsMadeForItsUserOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := clean(t)
	own, named := filepath.Join(e["XDG_STATE_HOME"], "sqllock", "sqllock.db"), filepath.Join(t.TempDir(), "named.db")
	applied, shared := filepath.Join(t.TempDir(), "applied.db"), filepath.Join(t.TempDir(), "shared.db")
	must(t, os.WriteFile(shared, nil, 0o600))
	must(t, os.Chmod(shared, 0o666)) // as users who share a file have made it
	call(t, e, 0, []string{"no database is named"}, "run", "hello", "--", "true")
	call(t, e, 0, nil, "run", "--db", "sqlite:"+named, "hello", "--", "true")
	call(t, e, 0, nil, "schema", "apply", "--db", "sqlite:"+applied)
	call(t, e, 0, nil, "run", "--db", "sqlite:"+shared, "hello", "--", "true")
	for file, want := range map[string]os.FileMode{own: 0o600, named: 0o600, applied: 0o600, shared: 0o666} {
		info, err := os.Stat(file)
		must(t, err)
		if mode := info.Mode().Perm(); mode != want {
			t.Errorf("%s: mode %v, want %v", file, mode, want)
		}
	}
}

func TestRunGivesBackTheCommandsExitCode(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	plain := filepath.Join(t.TempDir(), "plain")
	must(t, os.WriteFile(plain, []byte("not a program"), 0o600))
	for _, test := range []struct {
		code    int
		says    []string
		command []string
	}{
		{0, nil, []string{"true"}},
		{1, nil, []string{"false"}},
		{3, nil, []string{"sh", "-c", "exit 3"}},
		{255, nil, []string{"sh", "-c", "exit 255"}},
		{75, nil, []string{"sh", "-c", "exit 75"}},
		{128 + 15, nil, []string{"sh", "-c", "kill -TERM $$"}},
		{128 + 9, nil, []string{"sh", "-c", "kill -KILL $$"}},
		{126, []string{"cannot run the command", plain}, []string{plain}},
		{126, []string{"cannot run the command"}, []string{t.TempDir()}},
		{127, []string{"cannot run the command", "no-such-program"}, []string{"no-such-program"}},
		{127, []string{"cannot run the command", "no/such/program"}, []string{"no/such/program"}},
	} {
		call(t, on(t, db.url), test.code, test.says, append([]string{"run", "code", "--"}, test.command...)...)
	}
	// None of them has left the lock held.
	call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "code", "--", "true")
}

func TestACommandThatCannotStartLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	call(t, on(t, db.url), 127, []string{"cannot run the command"}, "run", "x", "--", script)
	call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")
}

func TestRunPassesStreamsThrough(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	data := make([]byte, 5<<20)
	_, _ = rand.Read(data)
	p := start(t, on(t, sqliteFile(t).url), "run", "streams", "--", "sh", "-c", "cat; echo done >&2")
	go func() {
		_, _ = p.stdin.Write(data)
		_ = p.stdin.Close()
	}()
	if got := p.rest(); !bytes.Equal(got, data) {
		t.Errorf("%d bytes came through, or others, not the %d that went in", len(got), len(data))
	}
	if code := p.exit(); code != 0 || p.errors() != "done\n" {
		t.Errorf("exit code %d, stderr %q, want 0 and the command's own", code, p.errors())
	}
}

func TestRunPassesStreamsThroughThatAreNoFiles(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var out, errs bytes.Buffer
	c := &console.Console{
		Stdin: strings.NewReader("in"), Stdout: &out, Stderr: &errs,
		Environ: []string{"SQLLOCK_DB=" + sqliteFile(t).url, "PATH=" + os.Getenv("PATH")},
	}
	code, _ := commands.Run(t.Context(), c, []string{"run", "x", "--", "sh", "-c", "cat; echo err >&2; exit 9"})
	if code != 9 || out.String() != "in" || errs.String() != "err\n" {
		t.Errorf("code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

func TestAHeldLockIsAnExitCodeAndNamesItsHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	host, err := os.Hostname()
	must(t, err)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "busy")
		says := []string{`lock "busy" is held by sqllock run sh, on ` + host, fmt.Sprintf("pid %d", holder.cmd.Process.Pid), "token 1"}
		call(t, e, 75, says, "run", "--wait", "0", "busy", "--", "echo", "not run")
		call(t, e, 75, append(says, "(waited "+vainly+")"), "run", "busy", "--wait", vainly, "--", "echo", "not run")
		call(t, e, 75, append(says, "(waited 1ns)"), "run", "busy", "--wait", "1ns", "--", "echo", "not run")
		if out := call(t, e, 0, nil, "run", "--wait", "0", "free", "--", "echo", "ran"); out != "ran\n" {
			t.Errorf("with another name it wrote %q", out)
		}
		holder.letGo()
		call(t, e, 0, nil, "run", "--wait", "0", "busy", "--", "true")
	})
}

func TestAHeldSessionLockIsAnExitCodeAndNamesItsHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "--kind", "session", "busy")
		says := []string{`lock "busy" is held by`, "session ", "from "}
		call(t, e, 75, says, "run", "--kind", "session", "--wait", "0", "busy", "--", "echo", "not run")
		call(t, e, 75, append(says, "(waited "+vainly+")"), "run", "--kind", "session", "--wait", vainly, "busy", "--", "echo", "not run")
		holder.letGo()
		// MySQL may have granted the lock to the waiter that has left, and finds that out only now.
		next := startAs(t, raceless, e, "run", "--kind", "session", "busy", "--", "true")
		must(t, next.stdin.Close())
		next.rest()
		if code := next.exit(); code != 0 {
			t.Errorf("after the holder had let go: exit code %d; stderr: %s", code, next.errors())
		}
	})
}

func TestRunWaitsForTheLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "busy")
		call(t, e, 75, []string{"is held by"}, "run", "--wait", "0", "busy", "--", "true")
		first := start(t, e, "run", "busy", "--", "sh", "-c", "echo $SQLLOCK_TOKEN; exec cat")
		first.waits(db)
		holder.letGo()
		first.expect("2")
		second := start(t, e, "run", "--wait", "forever", "busy", "--", "sh", "-c", "echo $SQLLOCK_TOKEN; exec cat")
		second.waits(db)
		first.letGo()
		second.expect("3")
		second.letGo()
	})
}

// exclusive fails if two of its runs overlap: a folder can be created only once.
const exclusive = `mkdir "$0/inside" || exit 1; ls "$0" >/dev/null; echo x >>"$0/count"; rmdir "$0/inside"`

func TestCommandsNeverOverlap(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	atOnce := func(t *testing.T, db testPlace, flags ...string) {
		t.Helper()
		const processes, rounds = 8, 3
		dir := t.TempDir()
		e := on(t, db.url)
		args := append(append([]string{"run", "contended"}, flags...), "--", "sh", "-c", exclusive, dir)

		// Nobody acquires the lock while it is held, so all commands compete for it.
		holder := held(t, e, append([]string{"contended"}, flags...)...)
		call(t, e, 75, []string{"is held"}, append([]string{"run", "--wait", "0"}, args[1:]...)...)
		for round := range rounds {
			program := raceless // which starts faster, so more of them meet
			if round == 0 {
				program = binary
			}
			var all []*process
			for range processes {
				all = append(all, startAs(t, program, e, args...))
			}
			if holder != nil {
				holder.letGo()
				holder = nil
			}
			for _, p := range all {
				p.exits(0)
			}
		}

		lines, err := os.ReadFile(filepath.Join(dir, "count"))
		must(t, err)
		if got := strings.Count(string(lines), "x\n"); got != processes*rounds {
			t.Errorf("%d commands ran, want %d", got, processes*rounds)
		}
	}
	// One server after the other: this many processes at once are enough for a machine that also does other work.
	for name, open := range servers { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			db := open(t)
			place := testPlace{db, db.DSN}
			call(t, on(t, place.url), 0, nil, "schema", "apply")
			atOnce(t, place)
			atOnce(t, place, "--kind", "session")
		})
	}
	t.Run("SQLite", func(t *testing.T) { atOnce(t, sqliteFile(t)) })
}

func TestCommandsNeverOverlapInAFileThatIsNotThereYet(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	dir, e := t.TempDir(), clean(t)
	var all []*process
	for range 8 {
		all = append(all, start(t, e, "run", "contended", "--", "sh", "-c", exclusive, dir))
	}
	for _, p := range all {
		p.exits(0, "no database is named")
	}
	lines, err := os.ReadFile(filepath.Join(dir, "count"))
	must(t, err)
	if got := strings.Count(string(lines), "x\n"); got != len(all) {
		t.Errorf("%d commands ran, want %d", got, len(all))
	}
}

func TestNamesAreAnyBytes(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		names := []string{"Zoë 🔒 ضفدع", "'; DROP TABLE sqllock_lock; --", "a", "A", "a ", "\xff\xfe", "x\ny", "--wait", strings.Repeat("n", 1024)}
		for _, name := range names {
			holder := held(t, on(t, db.url), "--", name)
			call(t, on(t, db.url), 75, []string{"is held by"}, "run", "--wait", "0", "--", name, "--", "true")
			t.Cleanup(holder.letGo) // so that they are all held at once
		}
	})
}

func TestKindSessionIsRefusedOnSQLite(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	says := []string{"SQLite has no sessions"}
	call(t, on(t, sqliteFile(t).url), 64, says, "run", "--kind", "session", "x", "--", "true")
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := clean(t)
	e["SQLLOCK_DB"] = "sqlite:" + filepath.Join(t.TempDir(), "x.db")
	for _, test := range []struct {
		says string
		args []string
	}{
		{"usage: sqllock run", []string{"run"}},
		{"usage: sqllock run", []string{"run", "name"}},
		{"usage: sqllock run", []string{"run", "name", "command"}},
		{"usage: sqllock run", []string{"run", "name", "--"}},
		{"usage: sqllock run", []string{"run", "--", "command"}},
		{"usage: sqllock run", []string{"run", "two", "names", "--", "command"}},
		{"invalid lock name", []string{"run", "", "--", "true"}},
		{"the limit is 1024", []string{"run", strings.Repeat("n", 1025), "--", "true"}},
		{"--wait is negative", []string{"run", "--wait", "-1s", "n", "--", "true"}},
		{"--kill-after is negative", []string{"run", "--kill-after", "-1s", "n", "--", "true"}},
		{`"soon"`, []string{"run", "--wait", "soon", "n", "--", "true"}},
		{"90s or 5m, 0 or forever", []string{"run", "--wait", "soon", "n", "--", "true"}},
		{"--ttl 1ms is too short", []string{"run", "--ttl", "1ms", "n", "--", "true"}},
		{`"--kind" flag: it is lease or session`, []string{"run", "--kind", "table", "n", "--", "true"}},
		{`"--log-format" flag: it is text or json`, []string{"run", "--log-format", "xml", "n", "--", "true"}},
		{"--duration is not more than 0", []string{"bench", "--duration", "0"}},
		{`"--kind" flag: it is lease or session`, []string{"bench", "--kind", "all"}},
		{"SQLite has no sessions", []string{"bench", "--kind", "session"}},
		{"for leases", []string{"run", "--kind", "session", "--prefix", "p", "n", "--", "true"}},
		{"only letters", []string{"run", "--prefix", "a;b", "n", "--", "true"}},
		{"only PostgreSQL has schemas", []string{"run", "--schema", "s", "n", "--", "true"}},
		{"--db is empty", []string{"run", "--db", "", "n", "--", "true"}},
		{"unknown flag: --bogus", []string{"run", "--bogus", "n", "--", "true"}},
		{`unknown command or argument "walk"`, []string{"walk"}},
		{`unknown command or argument "drop"`, []string{"schema", "drop"}},
		{"only letters", []string{"schema", "apply", "--prefix", "a b"}},
		{`"--dialect" flag: it is postgres, mysql or sqlite`, []string{"schema", "print", "--dialect", "oracle"}},
	} {
		code, stdout, stderr := runHere(t, e, test.args...)
		if code != 64 || stdout != "" || !strings.HasPrefix(stderr, "sqllock: ") || !strings.Contains(stderr, test.says) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want 64 and %q", test.args, code, stdout, stderr, test.says)
		}
	}
}

func TestHelpHasTheExitCodesAndTheDatabases(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, command := range []string{"", "--help", "run --help", "schema", "ls --help", "show --help", "release --help", "purge --help", "bench --help", "watch --help", "doctor --help"} {
		code, stdout, stderr := runHere(t, nil, strings.Fields(command)...)
		if code != 0 || stderr != "" {
			t.Errorf("%q: code %d, stderr %q", command, code, stderr)
		}
		parts := []string{"sqllock help database", "sqllock help exit-codes"}
		if command == "run --help" {
			parts = []string{strings.TrimSpace(exit.Help()), "SQLLOCK_DB", "postgres://", "mysql://", "sqlite:PATH", "SQLLOCK_TOKEN"}
		}
		for _, part := range parts {
			if !strings.Contains(stdout, part) {
				t.Errorf("%q: help does not have %q", command, part)
			}
		}
		for line := range strings.Lines(stdout) {
			if len([]rune(line)) > 105 {
				t.Errorf("%q: a long line: %s", command, line)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, arg := range []string{"version", "--version"} {
		code, stdout, _ := runHere(t, nil, arg)
		if code != 0 || !strings.HasPrefix(stdout, "sqllock ") || !strings.Contains(stdout, "lease tables version 1") {
			t.Errorf("%s: code %d, %q", arg, code, stdout)
		}
	}
}

func TestOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	for _, args := range [][]string{{}, {"help"}, {"run", "--help"}, {"--version"}, {"version"}, {"completion", "bash"}, {"schema", "print", "--dialect", "mysql"}, {"ls", "--json"}, {"show", "x"}, {"purge"}} {
		r, w := io.Pipe()
		must(t, r.Close())
		var errs bytes.Buffer
		c := &console.Console{Stdin: strings.NewReader(""), Stdout: w, Stderr: &errs, Environ: []string{"SQLLOCK_DB=" + db.url}}
		if code, _ := commands.Run(t.Context(), c, args); code != 74 || !strings.Contains(errs.String(), "closed pipe") {
			t.Errorf("%q: code %d, stderr %q, want 74", args, code, errs.String())
		}
	}
}
