package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
)

// listed runs sqllock with --json and returns its output without the times, which it checks.
func listed(t *testing.T, e env, args ...string) []jsonEntry {
	t.Helper()
	out := call(t, e, 0, nil, append(args, "--json")...)
	if !strings.HasPrefix(out, "{\n  \"format_version\": 1,\n  \"locks\": [") {
		t.Errorf("%q: it wrote %s", args, out)
	}
	var seen struct{ Locks []jsonEntry }
	must(t, json.Unmarshal([]byte(out), &seen))
	all := seen.Locks
	for i := range all {
		j := &all[i]
		if age := time.Since(j.Since); !j.Since.IsZero() && (age < -patience || age > patience) {
			t.Errorf("%s was taken %v ago", j.Name, age)
		}
		if alive := j.LeftSeconds != nil && *j.LeftSeconds > 0; alive != (j.Kind == kindLease && j.State == stateHeld) || alive && j.Until.Before(j.Since) {
			t.Errorf("%s, until %v, is %s", j.Name, j.Until, j.State)
		}
		j.Since, j.Until, j.LeftSeconds = time.Time{}, time.Time{}, nil
	}
	return all
}

func same(t *testing.T, got []jsonEntry, want ...jsonEntry) {
	t.Helper()
	if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
		t.Errorf("the answer is %+v\nwant %+v", got, want)
	}
}

// leaseOf returns the expected entry of a process that held has started.
func leaseOf(t *testing.T, p *process, name string) jsonEntry {
	t.Helper()
	host, err := os.Hostname()
	must(t, err)
	return jsonEntry{Name: name, Kind: kindLease, State: stateHeld, Token: 1, Owner: "sqllock run sh", Host: host, PID: p.cmd.Process.Pid}
}

var agesAgo = map[string]string{
	"postgres": "now() - interval '2 days'", "mysql": "UTC_TIMESTAMP() - INTERVAL 2 DAY", "mariadb": "UTC_TIMESTAMP() - INTERVAL 2 DAY",
	"sqlite": "CAST(unixepoch('subsec') * 1000000 AS INTEGER) - 172800000000",
}

// expire sets the lease of a process to one that expired long ago.
func (db testPlace) expire(t *testing.T, p *process) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), fmt.Sprintf("UPDATE sqllock_lease SET expires_at = %s WHERE pid = %d",
		agesAgo[string(db.Engine)], p.cmd.Process.Pid))
	must(t, err)
}

func TestLsListsWhoHoldsWhichLease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		if out := call(t, e, 0, []string{"no such locks"}, "ls", "--kind", "lease"); out != "" {
			t.Errorf("of nothing it wrote %q", out)
		}
		if out := call(t, e, 0, nil, "ls", "--kind", "lease", "--json"); out != noLocks {
			t.Errorf("of nothing it wrote %q", out)
		}
		a, b := held(t, e, "--ttl", "1h", "app/a"), held(t, e, "--ttl", "1h", "app/b")
		call(t, e, 0, nil, "run", "app/free", "--", "true")
		live, dead := leaseOf(t, a, "app/a"), leaseOf(t, b, "app/b")
		same(t, listed(t, e, "ls", "--kind", "lease", "app/"), live, dead)
		db.expire(t, b)
		dead.State = stateExpired
		same(t, listed(t, e, "ls", "--kind", "lease"), live, dead)
		same(t, listed(t, e, "ls", "--kind", "lease", "app/b"), dead)
		same(t, listed(t, e, "ls", "--kind", "lease", "--held"), live)
		same(t, listed(t, e, "ls", "--expired"), dead)
		same(t, listed(t, e, "ls", "--kind", "lease", "other"))

		lines := strings.Split(call(t, e, 0, nil, "ls", "--kind", "lease"), "\n")
		if len(lines) != 4 || strings.Join(strings.Fields(lines[0]), " ") != "NAME KIND TOKEN OWNER HOST/PID SINCE LEFT" ||
			!strings.HasPrefix(lines[1], "app/a  lease  1      sqllock run sh  "+live.Host) || !strings.Contains(lines[1], "  5") ||
			!strings.HasPrefix(lines[2], "app/b  lease  1      sqllock run sh  "+live.Host) || !strings.HasSuffix(lines[2], stateExpired) {
			t.Errorf("the table is\n%s", strings.Join(lines, "\n"))
		}
	})
}

func TestLsEscapesAHostileName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		const name = "\x1b[2J\n\xff"
		p := held(t, e, name)
		if out := call(t, e, 0, nil, "ls", "--kind", "lease"); !strings.Contains(out, "\n"+`"\x1b[2J\n\xff"  lease`) || strings.Count(out, "\n") != 2 {
			t.Errorf("the table is %q", out)
		}
		want := leaseOf(t, p, "\x1b[2J\n\ufffd")
		want.NameBytes = []byte(name)
		same(t, listed(t, e, "ls", "--kind", "lease"), want)
		if out := call(t, e, 0, nil, "show", "--kind", "lease", name); !strings.Contains(out, `"\x1b[2J\n\xff"`) {
			t.Errorf("of one it writes %q", out)
		}
		if out := call(t, e, 0, nil, "release", "--force", name); !strings.HasPrefix(out, `lease "\x1b[2J\n\xff" was taken from sqllock run sh`) {
			t.Errorf("when it is released it writes %q", out)
		}
	})
}

// MariaDB does not show the holders of session locks unless it is configured to.
func TestLsListsSessionLocksWithoutTables(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		held(t, e, "--kind", "session", "busy")
		const tables = "tables are missing"
		call(t, e, 69, []string{tables, "sqllock schema apply"}, "ls", "--kind", "lease")
		if db.Engine == "mariadb" {
			call(t, e, 69, []string{"session locks cannot be shown", "performance_schema=ON"}, "ls", "--kind", "session")
			call(t, e, 69, []string{tables, "performance_schema=ON"}, "ls")
			call(t, e, 0, nil, "schema", "apply")
			if out := call(t, e, 0, []string{"performance_schema=ON"}, "ls", "--json"); out != noLocks {
				t.Errorf("it wrote %q", out)
			}
			return
		}
		if out := call(t, e, 0, []string{tables, "sqllock schema apply"}, "ls", "busy"); !strings.Contains(out, "\nbusy  session  -") {
			t.Errorf("the table is\n%s", out)
		}
		serverName := fmt.Sprintf("key %d", pg.Key("busy"))
		if db.Engine == "mysql" {
			var database string
			must(t, db.Get(&database, "SELECT DATABASE()"))
			serverName = mysql.ServerName(database, "busy")
		}
		got := listed(t, e, "ls", "--kind", "session", "busy")
		if len(got) != 1 || got[0].Session == 0 || got[0].Address == "" {
			t.Fatalf("the answer is %+v", got)
		}
		want := jsonEntry{
			Name: "busy", ServerName: serverName, Kind: kindSession, State: stateHeld,
			Session: got[0].Session, Address: got[0].Address, Owner: got[0].Owner,
		}
		same(t, got, want)
		same(t, listed(t, e, "ls", "--kind", "session", "bus"), want)
		same(t, listed(t, e, "ls", "--kind", "session", "busier"))
		start(t, e, "run", "--kind", "session", "busy", "--", "true")
		until := func(done func() bool) { // the waiter asks repeatedly, with pauses
			for deadline := time.Now().Add(patience); !done() && time.Now().Before(deadline); {
			}
		}
		waited := func(name string) (got []jsonEntry) {
			until(func() bool {
				got = listed(t, e, "ls", "--kind", "session", name)
				return len(got) != 1 || got[0].Waiters > 0
			})
			return got
		}
		want.Waiters = 1
		same(t, waited("busy"), want)
		var out string
		until(func() bool {
			out = call(t, e, 0, nil, "ls", "--kind", "session", "busy")
			return strings.HasSuffix(out, " 1\n")
		})
		contains(t, out, "SINCE LEFT WAITING", "- 1")
		same(t, waited(serverName), want)
	})
}

func TestLsKnowsWhatSqllockCallsItsSessionLocks(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		if db.Engine == "mariadb" {
			return // it shows neither
		}
		e := on(t, db.url)
		session := []string{"--kind", "session"}
		long := strings.Repeat("n", mostSigned)
		if db.Engine == "mysql" {
			long = strings.Repeat("n", 200)
		}
		for name, owner := range map[string]string{"nightly (eu) /x": "migrate (0042)", "night": "x", "night:a,b 100%": "y", "night\u00e9%41": "z", long: "the boss"} {
			p := held(t, e, append(session, "--owner", owner, name)...)
			got := listed(t, e, append([]string{"ls", name}, session...)...)
			if len(got) < 1 || got[len(got)-1].Name != name || got[len(got)-1].Owner != owner {
				t.Errorf("of %q it knows %+v", name, got)
			}
			if got := listed(t, e, append([]string{"show", name}, session...)...); len(got) != 1 || got[0].Owner != owner {
				t.Errorf("of %q alone it knows %+v", name, got)
			}
			who := "held by " + owner + ", session"
			call(t, e, 75, []string{who}, append(append([]string{"run", "--wait", "0"}, session...), name, "--", "true")...)
			if name == long { // only its hash is known
				if got := listed(t, e, append([]string{"ls", name[1:]}, session...)...); len(got) != 0 {
					t.Errorf("of a long name it knows %+v", got)
				}
			} else if got := listed(t, e, append([]string{"ls", "night"}, session...)...); len(got) != 1 || got[0].Name != name || got[0].Owner != owner {
				t.Errorf("of the locks that begin with night it knows %+v", got)
			}
			p.letGo()
		}
	})
}

// MariaDB does not show the holders of session locks unless it is configured to. That must not look like "no locks".
func TestLsSaysWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	db := servers["MariaDB"](t)
	e := on(t, db.DSN)
	call(t, e, 0, nil, "schema", "apply")
	held(t, e, "--kind", "session", "busy")
	code, stdout, stderr := runHere(t, e, "ls")
	if code != 0 || stdout != "" || strings.Contains(stderr, "no such locks") || !strings.Contains(stderr, "no such leases; of session locks it is not known\n") {
		t.Errorf("code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
}

// Such a user, as most programs have, cannot list session locks on MySQL.
func TestAUserWithoutPrivilegesSeesLeases(t *testing.T) {
	t.Parallel()
	db := servers["MySQL"](t)
	call(t, on(t, db.DSN), 0, nil, "schema", "apply")
	config, err := gomysql.ParseDSN(db.DSN)
	must(t, err)
	user := "v" + config.DBName[max(0, len(config.DBName)-24):]
	_, err = db.ExecContext(t.Context(), "CREATE USER "+user+" IDENTIFIED BY 'visitor'")
	must(t, err)
	t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
	_, err = db.ExecContext(t.Context(), "GRANT ALL ON "+config.DBName+".* TO "+user)
	must(t, err)
	config.User, config.Passwd = user, "visitor"

	e := on(t, config.FormatDSN())
	p := held(t, e, "x")
	const why = "requires SELECT on the tables"
	if out := call(t, e, 0, []string{"session locks cannot be shown", why}, "ls"); !strings.Contains(out, "\nx ") {
		t.Errorf("it wrote %q", out)
	}
	call(t, e, 69, []string{why}, "ls", "--kind", "session")
	same(t, listed(t, e, "show", "--kind", "lease", "x"), leaseOf(t, p, "x"))
	if out := call(t, e, 0, nil, "show", "x"); !strings.Contains(out, "session      free\n") {
		t.Errorf("of one it wrote %q", out)
	}
}

func TestOperatorsUsageErrors(t *testing.T) {
	t.Parallel()
	e := on(t, sqliteFile(t).url)
	for _, test := range []struct {
		says string
		args []string
	}{
		{"usage: sqllock ls", []string{"ls", "a", "b"}},
		{`"--kind" flag: it is lease, session or all`, []string{"ls", "--kind", "table"}},
		{"--held and --expired have no lock in common", []string{"ls", "--held", "--expired"}},
		{"--expired is for leases", []string{"ls", "--kind", "session", "--expired"}},
		{"for leases", []string{"ls", "--kind", "session", "--prefix", "p"}},
		{"SQLite has no sessions", []string{"ls", "--kind", "session"}},
		{"usage: sqllock show", []string{"show"}},
		{"invalid lock name", []string{"show", ""}},
		{`"--kind" flag: it is lease, session or all`, []string{"show", "--kind", "table", "x"}},
		{"SQLite has no sessions", []string{"show", "--kind", "session", "x"}},
		{"usage: sqllock release", []string{"release", "--force"}},
		{"invalid lock name", []string{"release", "--force", ""}},
		{`"--kind" flag: it is lease or session`, []string{"release", "--force", "--kind", "all", "x"}},
		{"SQLite has no sessions", []string{"release", "--force", "--kind", "session", "x"}},
		{"only letters", []string{"release", "--force", "--prefix", "a;b", "x"}},
		{"--older-than is negative", []string{"purge", "--older-than", "-1s"}},
		{"unknown command or argument", []string{"purge", "x"}},
	} {
		code, stdout, stderr := runHere(t, e, test.args...)
		if code != 64 || stdout != "" || !strings.HasPrefix(stderr, "sqllock: ") || !strings.Contains(stderr, test.says) {
			t.Errorf("%q: code %d, stdout %q, stderr %q; want 64 and %q", test.args, code, stdout, stderr, test.says)
		}
	}
}
