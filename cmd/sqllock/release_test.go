package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestAReleaseByForceIsToldToTheHolderOfALease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		p := held(t, e, "--ttl", "900ms", "x")
		call(t, e, 64, []string{"nothing was released", "next renewal", "not stopped", "--force"}, "release", "x")
		call(t, e, 75, []string{"is held by"}, "run", "--wait", "0", "x", "--", "true")

		who := fmt.Sprintf("pid %d, token 1", p.cmd.Process.Pid)
		out := call(t, e, 0, nil, "release", "--force", "x")
		if !strings.HasPrefix(out, `lease "x" was taken from sqllock run sh, on `) || !strings.Contains(out, who) {
			t.Errorf("it wrote %q", out)
		}
		p.exits(76, "the command was ended", "lock was lost")
		if out := call(t, e, 0, nil, "run", "--wait", "0", "x", "--", "sh", "-c", "echo $SQLLOCK_TOKEN"); out != "3\n" {
			t.Errorf("the next token is %q, want 3", out)
		}
		if out := call(t, e, 0, nil, "release", "--force", "x"); out != `lease "x" was free`+"\n" {
			t.Errorf("of a free lock it wrote %q", out)
		}
	})
}

func TestAReleaseByForceEndsTheSessionOfASessionLock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		session := []string{"release", "--kind", "session", "x"}
		p := held(t, e, "--kind", "session", "x")
		call(t, e, 64, []string{"nothing was released", "every other lock of that session", "--force"}, session...)
		out := call(t, e, 0, nil, append(session, "--force")...)
		if !strings.HasPrefix(out, `session lock "x" was taken by ending the session of `) || !strings.Contains(out, "session ") {
			t.Errorf("it wrote %q", out)
		}
		p.exits(76, "the command was ended", "lock was lost")
		if out := call(t, e, 0, nil, append(session, "--force")...); out != `session lock "x" was free`+"\n" {
			t.Errorf("of a free lock it wrote %q", out)
		}
	})
}

func TestLeasesAreReleasedAndPurgedOnlyWhereThereAreTables(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		says := []string{"tables are missing", "sqllock schema apply", "--prefix p_"}
		call(t, on(t, db.url), 69, says, "release", "--force", "--prefix", "p_", "x")
		call(t, on(t, db.url), 69, says, "purge", "--prefix", "p_")
	})
}
