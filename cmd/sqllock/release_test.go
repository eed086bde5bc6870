package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestAReleaseByForceIsToldToTheHolderOfALease(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		p := held(t, e, "--ttl", tellingTTL, "x")
		call(t, e, 64, []string{"nothing was released", "next renewal", "not stopped", "--force"}, "release", "x")
		call(t, e, 75, []string{"is held by"}, "run", "--wait", "0", "x", "--", "true")

		who := fmt.Sprintf("pid %d, token 1", p.cmd.Process.Pid)
		call(t, e, 75, []string{"nothing was released", "the token is not 7 any more", "is held by"}, "release", "--force", "--token", "7", "x")
		call(t, e, 64, []string{"session lock has none"}, "release", "--force", "--token", "1", "--kind", "session", "x")
		call(t, e, 64, []string{"1 or higher"}, "release", "--force", "--token", "0", "x")
		out := call(t, e, 0, nil, "release", "--force", "--token", "1", "x")
		if !strings.HasPrefix(out, `lease "x" was taken from sqllock run sh, on `) || !strings.Contains(out, who) {
			t.Errorf("it wrote %q", out)
		}
		contains(t, out, "it is told at its next renewal", "its token is outdated, and the next token is 3 or higher")
		p.exits(76, "the command was ended") // lost, or expired if the machine stalled until then
		if out := call(t, e, 0, nil, "run", "--wait", "0", "x", "--", "sh", "-c", "echo $SQLLOCK_TOKEN"); out != "3\n" {
			t.Errorf("the next token is %q, want 3", out)
		}
		if out := call(t, e, 0, nil, "release", "--force", "x"); out != `lease "x" was free`+"\n" {
			t.Errorf("of a free lock it wrote %q", out)
		}
	})
}

func TestAReleaseByForceNamesAllWhoHeldTheLeaseTogether(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		for _, flags := range [][]string{{"--shared"}, {"--limit", "3"}} {
			name, flags := flags[0], append(flags, "--ttl", tellingTTL, "--", flags[0])
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				all := []*process{held(t, e, flags...), held(t, e, flags...)}
				out := call(t, e, 0, nil, "release", "--force", "--", name)
				for i, p := range all {
					contains(t, out, fmt.Sprintf("lease %q was taken from sqllock run sh, on ", name), fmt.Sprintf("pid %d, token %d", p.cmd.Process.Pid, i+1))
				}
				contains(t, out, "each of them is told at its next renewal", "their tokens are outdated, and the next token is 4 or higher")
				if strings.Count(out, "\n") != 3 {
					t.Errorf("it wrote %q, want a line for each holder and one more", out)
				}
				for _, p := range all {
					p.exits(76, "the command was ended") // lost, or expired if the machine stalled until then
				}
				call(t, e, 0, nil, "run", "--wait", "0", "--", name, "--", "sh", "-c", "test $SQLLOCK_TOKEN -ge 4")
			})
		}
	})
}

func TestAReleaseByForceOfALeaseThatNobodyUses(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	e := on(t, db.url)
	call(t, e, 0, nil, "run", "--at-least", "1h", "kept", "--", "true")
	contains(t, call(t, e, 0, nil, "release", "--force", "kept"), `lease "kept" was kept after its release: token 1`, "the next token is 3 or higher")
	dead := held(t, e, "--ttl", "1h", "dead")
	dead.stop()
	db.expire(t, dead)
	contains(t, call(t, e, 0, nil, "release", "--force", "dead"), `lease "dead" had expired: sqllock run sh, on `, "the next token is 3 or higher")
	for _, name := range []string{"kept", "dead"} {
		if out := call(t, e, 0, nil, "run", "--wait", "0", name, "--", "sh", "-c", "echo $SQLLOCK_TOKEN"); out != "3\n" {
			t.Errorf("%s: the next token is %q, want 3", name, out)
		}
	}
}

func TestAReleaseByForceSaysWhoStillSharesASessionLock(t *testing.T) {
	t.Parallel()
	e := on(t, servers["PostgreSQL"](t).DSN)
	session := []string{"release", "--kind", "session", "--force", "x"}
	all := []*process{held(t, e, "--kind", "session", "--shared", "x"), held(t, e, "--kind", "session", "--shared", "x")}
	contains(t, call(t, e, 0, nil, session...), "it is still shared by others: 1; each call ends one of them")
	if out := call(t, e, 0, nil, session...); strings.Contains(out, "still") {
		t.Errorf("of the last one it wrote %q", out)
	}
	for _, p := range all {
		p.exits(76, `lock "x": the command was ended`, "lock was lost")
	}
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
		p.exits(76, `lock "x": the command was ended`, "lock was lost")
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
