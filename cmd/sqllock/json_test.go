package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// objectOf parses the one object that a command has printed, and checks its version and that its fields are documented.
func objectOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	if object["format_version"] != 1.0 || !strings.HasPrefix(strings.Join(strings.Fields(text), ""), `{"format_version":1,`) {
		t.Errorf("it does not begin with its version: %s", text)
	}
	_, help, _ := runHere(t, nil, "help", "json")
	documented := strings.FieldsFunc(help, func(r rune) bool { return r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	var check func(value any)
	check = func(value any) {
		switch value := value.(type) {
		case []any:
			for _, one := range value {
				check(one)
			}
		case map[string]any:
			for field, inside := range value {
				if !slices.Contains(documented, field) {
					t.Errorf("sqllock help json does not have %s", field)
				}
				check(inside)
			}
		}
	}
	check(object)
	return object
}

func TestEveryCommandThatPrintsHasJSON(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	e := on(t, db.url)
	held(t, e, "--ttl", "1h", "x")
	for _, args := range []string{"ls", "show x", "version", "schema print", "schema apply", "schema check", "purge", "doctor", "bench --duration 5ms", "release --force x"} {
		code, stdout, stderr := runHere(t, e, append(strings.Fields(args), "--json")...)
		if code != 0 && code != 78 || stderr != "" {
			t.Errorf("%s: code %d, stderr %q", args, code, stderr)
		}
		objectOf(t, stdout)
	}
	_, stdout, _ := runHere(t, e, "--help")
	for _, command := range []string{"completion", "doctor", "help", "ls", "man", "purge", "release", "run", "schema", "show", "version", "watch", "bench"} {
		if !strings.Contains(stdout, "\n  "+command+" ") {
			t.Errorf("there is no command %s", command)
		}
	}
}

// Scripts read these fields, so none is renamed while the format has the version 1. The other tests look for the rest.
func TestTheObjectsHaveTheFieldsOfVersion1(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	e := on(t, db.url)
	held(t, e, "--ttl", "1h", "--owner", "me", "x")
	for _, test := range [][2]string{
		{"ls --json", "locks locks.kind locks.left_seconds locks.name locks.owner locks.pid locks.since locks.state locks.token locks.until"},
		{"doctor --json", "findings findings.id findings.level findings.text verdicts verdicts.advice verdicts.id verdicts.level verdicts.text"},
		{"bench --duration 5ms --json", "duration_seconds kind results results.at_once results.count results.mean_seconds results.median_seconds results.name results.p99_seconds server"},
		{"schema print --json", "dialect sql tables_version"},
		{"schema check --json", "dialect ok tables_version"},
		{"purge --json", "deleted"},
		{"release --force --json x", "kind name next_token was was.owner was.state was.token"},
		{"version --json", "arch go os release tables_version"},
	} {
		args, want := test[0], test[1]
		_, stdout, _ := runHere(t, e, strings.Fields(args)...)
		found := make(map[string]bool)
		var walk func(path string, value any)
		walk = func(path string, value any) {
			switch value := value.(type) {
			case []any:
				for _, one := range value {
					walk(path, one)
				}
			case map[string]any:
				for field, inside := range value {
					found[path+field] = true
					walk(path+field+".", inside)
				}
			}
		}
		walk("", objectOf(t, stdout))
		for field := range strings.FieldsSeq(want) {
			if !found[field] {
				t.Errorf("%s: there is no field %s", args, field)
			}
		}
	}
}

func TestWhatTheObjectsOfCommandsThatChangeSomethingSay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	e := on(t, db.url)
	free := objectOf(t, call(t, e, 0, nil, "release", "--force", "--json", "x"))
	if len(free["was"].([]any)) != 0 || free["next_token"] != nil || free["kind"] != "lease" || free["name"] != "x" {
		t.Errorf("of a free lock it says %v", free)
	}
	p := held(t, e, "--ttl", "1h", "x")
	taken := objectOf(t, call(t, e, 0, nil, "release", "--force", "--json", "x"))
	was := taken["was"].([]any)[0].(map[string]any)
	if was["pid"] != float64(p.cmd.Process.Pid) || was["state"] != stateHeld || was["token"] != 1.0 || was["left_seconds"] != nil || taken["next_token"] != 3.0 {
		t.Errorf("of a lease it says %v", taken)
	}
	if purged := objectOf(t, call(t, e, 0, nil, "purge", "--json")); purged["deleted"] != 0.0 {
		t.Errorf("of nothing to delete it says %v", purged)
	}

	good := objectOf(t, call(t, e, 0, nil, "schema", "check", "--json"))
	if good["ok"] != true || good["dialect"] != "sqlite" || good["problem"] != nil {
		t.Errorf("of good tables it says %v", good)
	}
	bad := objectOf(t, call(t, e, 69, []string{"is missing"}, "schema", "check", "--prefix", "p_", "--json"))
	if text, _ := bad["problem"].(string); bad["ok"] != false || !strings.Contains(text, "p_lock is missing") {
		t.Errorf("of no tables it says %v", bad)
	}
	_, plain, _ := runHere(t, e, "schema", "print")
	if sql := objectOf(t, call(t, e, 0, nil, "schema", "print", "--json")); sql["sql"] != plain {
		t.Errorf("the SQL is %v", sql["sql"])
	}
}

func TestAForcedReleaseOfASessionLockAsJSON(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		held(t, e, "--kind", "session", "x")
		args := []string{"release", "--kind", "session", "--force", "--json", "x"}
		taken := objectOf(t, call(t, e, 0, nil, args...))
		was := taken["was"].([]any)[0].(map[string]any)
		if was["session"] == nil || was["kind"] != kindSession || taken["next_token"] != nil {
			t.Errorf("of a session lock it says %v", taken)
		}
	})
}

func TestLinesOfWatchHaveTheirVersion(t *testing.T) {
	t.Parallel()
	e := on(t, sqliteFile(t).url)
	held(t, e, "--ttl", "1h", "x")
	w := start(t, e, "watch", "--json")
	if event := objectOf(t, w.line()); event["event"] != eventHeld || event["name"] != "x" {
		t.Errorf("the event is %v", event)
	}
}
