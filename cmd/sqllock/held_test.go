package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestANameStaysTakenForAtLeast(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 3, nil, "run", "--at-least", "1h", "failed", "--", "sh", "-c", "exit 3")
		call(t, e, 0, nil, "run", "--at-least", "1h", "nightly", "--", "true")
		for _, name := range []string{"failed", "nightly"} {
			call(t, e, 75, []string{"kept after its release (--at-least): token 1"}, "run", "--wait", "0", name, "--", "true")
		}
		call(t, e, 75, []string{"not waited for"}, "run", "--wait", "59m", "--give-up-early", "nightly", "--", "true")

		call(t, e, 0, nil, "run", "--at-least", "1ms", "short", "--", "true")
		call(t, e, 0, nil, "run", "short", "--", "true")
	})
}

func TestANameIsNotKeptForACommandThatCannotStart(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	script := filepath.Join(t.TempDir(), "script")
	must(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o700))
	call(t, on(t, db.url), 127, []string{"cannot run the command"}, "run", "--at-least", "1h", "x", "--", script)
	call(t, on(t, db.url), 0, nil, "run", "--wait", "0", "x", "--", "true")
}

func TestTheExitCodeForAHeldLockIsTheCallers(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "busy")
		call(t, e, 9, []string{"is held by"}, "run", "--wait", vainly, "--on-held", "9", "busy", "--", "echo", "not run")
		call(t, e, 255, []string{"is held by"}, "run", "--wait", "0", "--on-held", "255", "busy", "--", "echo", "not run")
		if out := call(t, e, 0, nil, "run", "--wait", "0", "--on-held", "0", "busy", "--", "echo", "not run"); out != "" {
			t.Errorf("the command ran and wrote %q", out)
		}
		holder.letGo()
		call(t, e, 4, nil, "run", "--wait", "0", "--on-held", "9", "busy", "--", "sh", "-c", "exit 4")
	})
}

func TestAHeldSessionLockHasTheCallersExitCodeToo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "--kind", "session", "busy")
		call(t, e, 9, []string{"is held by"}, "run", "--kind", "session", "--wait", "0", "--on-held", "9", "busy", "--", "true")
		holder.letGo()
	})
}

func TestWaitingInVainIsGivenUpEarly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		holder := held(t, e, "--ttl", "1h", "busy")
		says := []string{"is held by", "(not waited for: unless it is released it outlasts --wait 1m20s)"}
		call(t, e, 75, says, "run", "--wait", "80s", "--give-up-early", "busy", "--", "true")
		holder.letGo()

		dead := held(t, e, "--ttl", "6s", "busy")
		must(t, dead.cmd.Process.Kill())
		dead.exit()
		call(t, e, 0, nil, "run", "--wait", "80s", "--give-up-early", "busy", "--", "true")
	})
}

func TestNHoldTheLockTogether(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		try := func(code int, says []string, flags ...string) {
			t.Helper()
			call(t, e, code, says, append(append([]string{"run", "--wait", "0"}, flags...), "pool", "--", "true")...)
		}
		one := held(t, e, "--limit", "2", "pool")
		two := held(t, e, "--limit", "2", "pool")
		full := []string{"is held by sqllock run sh"}
		try(75, full, "--limit", "2")
		try(75, full)
		try(75, full, "--limit", "3")
		const same = "everybody has to ask for the same"
		try(64, []string{"asked for with --shared, and is held with --limit 2 by sqllock run sh", same}, "--shared", "--on-held", "0")
		one.letGo()
		try(0, nil, "--limit", "2")
		three := held(t, e, "--limit", "3", "pool") // a deployment changes the limit
		try(75, full, "--limit", "3")
		two.letGo()
		four := held(t, e, "--limit", "3", "pool")
		try(75, full, "--limit", "2")
		try(0, nil, "--limit", "3")
		three.letGo()
		four.letGo()
	})
}

func TestSharesExcludeOneWhoHoldsTheLockAlone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	share := func(t *testing.T, db testPlace, flags ...string) {
		t.Helper()
		e := on(t, db.url)
		with := func(more ...string) []string { return append(append([]string{}, flags...), more...) }
		try := func(code int, says []string, more ...string) {
			t.Helper()
			call(t, e, code, says, append(append([]string{"run", "--wait", "0"}, with(more...)...), "book", "--", "true")...)
		}
		readers := []*process{held(t, e, with("--shared", "book")...), held(t, e, with("--shared", "book")...)}
		try(75, []string{"is held by"})
		try(0, nil, "--shared")
		for _, reader := range readers {
			reader.letGo()
		}
		writer := held(t, e, with("book")...)
		try(75, []string{"is held by"}, "--shared")
		writer.letGo()
	}
	onEach(t, func(t *testing.T, db testPlace) {
		share(t, db)
		switch db.Engine {
		case "postgres":
			share(t, db, "--kind", "session")
		case "sqlite":
			call(t, on(t, db.url), 64, []string{"SQLite has no sessions"}, "run", "--kind", "session", "--shared", "x", "--", "true")
		default:
			says := []string{"no shared session locks: leave out --shared or --kind session"}
			call(t, on(t, db.url), 64, says, "run", "--kind", "session", "--shared", "x", "--", "true")
		}
	})
}

func TestTheHolderIsCalledAsItWants(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		named := func(flags ...string) {
			t.Helper()
			holder := held(t, e, append(flags, "--owner", "Jane's import", "busy")...)
			call(t, e, 75, []string{"is held by Jane's import, "}, append(append([]string{"run", "--wait", "0"}, flags...), "busy", "--", "true")...)
			holder.letGo()
		}
		named()
		// SQLite has no sessions. MariaDB does not show their attributes by default.
		if db.Engine == "postgres" || db.Engine == "mysql" {
			named("--kind", "session")
		}
	})
}
