package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// behind returns the URL of a database on a new network.
func behind(t *testing.T, db testPlace) (url string, network *sqltest.Network) {
	t.Helper()
	network = db.Network(t)
	return strings.Replace(db.url, locktest.AddressIn(db.url), network.Address(), 1), network
}

func TestAWaitOutlastsADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 0, nil, "schema", "apply")
		for name, flags := range map[string][]string{
			"lease": {"--wait", "80s", "--ttl", "1m"}, "session": {"--wait", "forever", "--kind", "session", "--ttl", "1m"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				url, network := behind(t, db)
				network.Refuse()
				run := append(append([]string{"run"}, flags...), name, "--", "sh", "-c", "echo held; exec cat")
				atFirst := start(t, on(t, url), run...)
				atFirst.says("waiting: the database cannot be used for now: ")
				network.Heal()
				atFirst.expect("held")
				must(t, atFirst.stdin.Close())
				atFirst.exits(0, "refused")

				holder := held(t, e, append(flags, name)...)
				waiter := start(t, on(t, url), run...)
				if name == "lease" {
					waiter.waits(db)
				} else {
					db.until(t, waitingSession[db.Engine])
				}
				network.Refuse()
				waiter.says("waiting: the database cannot be used for now: ")
				network.Heal()
				holder.letGo()
				waiter.expect("held")
				must(t, waiter.stdin.Close())
				waiter.exits(0, "the database cannot be used for now")
			})
		}
	})
}

var waitingSession = map[sqltest.Engine]string{
	sqltest.EnginePostgres: `SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
		WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()`,
	sqltest.EngineMySQL:   "SELECT COUNT(*) FROM performance_schema.processlist WHERE db = DATABASE() AND state = 'User lock'",
	sqltest.EngineMariaDB: "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND state = 'User lock'",
}

func TestADatabaseThatGoesAway(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 0, nil, "schema", "apply")
		for _, flags := range [][]string{{"--ttl", "6s"}, {"--kind", "session", "--ttl", "7s"}} {
			run := func(more ...string) []string { return append(append([]string{"run"}, flags...), more...) }
			t.Run(flags[1], func(t *testing.T) {
				t.Parallel()
				url, network := behind(t, db)
				holder := held(t, on(t, url), append(flags, "held")...)
				network.Refuse()
				holder.exits(76, "the command was ended")
				call(t, e, 0, nil, run("held", "--", "true")...) // nothing stays held

				url, network = behind(t, db)
				ending := held(t, on(t, url), append(flags, "ends")...)
				network.Refuse()
				must(t, ending.stdin.Close())
				code := ending.exit()
				if says := ending.errors(); code != 0 && code != 76 || says == "" || strings.Contains(says, "somebody else") {
					t.Errorf("exit code %d, stderr %q", code, says)
				}
				call(t, e, 0, nil, run("ends", "--", "true")...)

				url, network = behind(t, db)
				other := held(t, e, slices.Concat(flags[:len(flags)-1], []string{"1m", "busy"})...) // outlasts the wait
				waiter := start(t, on(t, url), run("-v", "--wait", "12s", "busy", "--", "echo", "not run")...)
				waiter.says("waiting for the lock")
				network.Refuse()
				if code := waiter.exit(); code != 69 {
					t.Errorf("exit code %d, stderr %q", code, waiter.errors())
				}
				other.letGo()
				call(t, e, 0, nil, run("--wait", "0", "busy", "--", "true")...)
			})
		}
	})
}

func TestADatabaseThatIsSilentIsNotTakenForALockThatIsHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		url, network := behind(t, db)
		network.Cut()
		for _, kind := range []string{"lease", "session"} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				p := start(t, on(t, url), "run", "--kind", kind, "--wait", "1s", "x", "--", "true")
				must(t, p.stdin.Close())
				code, says := p.exit(), p.errors()
				const want = `sqllock: lock "x" was not taken (waited 1s), since the database could not be used: `
				if code != 69 || !strings.HasPrefix(says, want) || strings.Count(says, "\n") != 1 || strings.Contains(says, "inspect") {
					t.Errorf("exit code %d, stderr %q", code, says)
				}
			})
		}
	})
}

func TestANameIsKeptThoughTheDatabaseIsAwayWhenTheCommandEnds(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		call(t, e, 0, nil, "schema", "apply")
		for _, flag := range []string{"--log-format=text", "--verbose"} {
			t.Run(flag, func(t *testing.T) {
				t.Parallel()
				url, network := behind(t, db)
				holder := held(t, on(t, url), flag, "--ttl", "5m", "--at-least", "1h", "kept "+flag)
				network.Refuse()
				must(t, holder.stdin.Close())
				holder.says("the release is repeated")
				network.Heal()
				if code, says := holder.exit(), holder.errors(); code != 0 || strings.Count(says, "the release is repeated") != 1 {
					t.Errorf("exit code %d, stderr %q", code, says)
				}
				call(t, e, 75, []string{"kept after its release"}, "run", "--wait", "0", "kept "+flag, "--", "true")
			})
		}
	})
}

func TestAReleaseThatIsNotConfirmedSaysWhenTheLockIsFree(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		call(t, on(t, db.url), 0, nil, "schema", "apply")
		url, network := behind(t, db)
		holder := held(t, on(t, url), "--ttl", "5m", "x")
		network.Refuse()
		must(t, holder.stdin.Close())
		holder.exits(0, `the release of lock "x" was not confirmed; it is free within 5m0s: `)
		if says := holder.errors(); strings.Contains(says, "background") {
			t.Errorf("stderr promises a release: %s", says)
		}
	})
}
