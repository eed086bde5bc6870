package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
)

// logged parses everything that a program wrote to stderr with --log-format json.
func logged(t *testing.T, stderr string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(stderr) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if one["time"] == nil || one["level"] == nil || one["msg"] == nil {
			t.Errorf("not of the log's form: %s", line)
		}
		lines = append(lines, one)
	}
	return lines
}

// mustLog checks that a log has these messages, possibly among others, and returns the first of each.
func mustLog(t *testing.T, stderr string, messages ...string) (found []map[string]any) {
	t.Helper()
	for _, line := range logged(t, stderr) {
		if len(found) < len(messages) && strings.Contains(line["msg"].(string), messages[len(found)]) {
			found = append(found, line)
		}
	}
	if len(found) < len(messages) {
		t.Fatalf("the log does not say %q next: %s", messages[len(found)], stderr)
	}
	return found
}

func TestVerboseSaysWhatHappensToTheLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	story := func(t *testing.T, db testPlace, kind string) {
		t.Helper()
		e := on(t, db.url)
		holder := held(t, e, "--kind", kind, "busy")
		p := start(t, e, "run", "--verbose", "--log-format", "json", "--kind", kind, "busy", "--", "sh", "-c", "echo own >&2; exit 4")
		p.says("waiting for the lock")
		holder.letGo()
		if code := p.exit(); code != 4 {
			t.Errorf("exit code %d, want 4", code)
		}
		stderr := strings.Replace(p.errors(), "own\n", "", 1)
		lines := mustLog(t, stderr, "waiting for the lock", "lock acquired", "command ended", "lock released")
		who, _ := lines[0]["holder"].(map[string]any)
		if kind == kindLease && who["pid"] != float64(holder.cmd.Process.Pid) || kind == kindSession && who["session"] == nil {
			t.Errorf("not for the holder, process %d: %v", holder.cmd.Process.Pid, lines[0])
		}
		if took, ok := lines[1]["took_seconds"].(float64); !ok || took <= 0 || lines[1]["lock"] != "busy" || lines[1]["kind"] != kind {
			t.Errorf("not how it was acquired: %v", lines[1])
		}
		if kind == kindLease && lines[1]["token"] != 2.0 {
			t.Errorf("not the token: %v", lines[1])
		}
		if lines[2]["exit_code"] != 4.0 {
			t.Errorf("not the exit code: %v", lines[2])
		}
		if held, ok := lines[3]["held_seconds"].(float64); !ok || held <= 0 {
			t.Errorf("not how long it was held: %v", lines[3])
		}
	}
	onEach(t, func(t *testing.T, db testPlace) {
		story(t, db, kindLease)
		if db.Engine != "sqlite" {
			story(t, db, kindSession)
		}
	})
}

func TestVerboseSaysWhyTheLockWasLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := start(t, on(t, db.url), "run", "-v", "--log-format", "json", "--ttl", tellingTTL, "x", "--", "sh", "-c", "echo ready; exec cat")
	p.expect("ready")
	_, err := db.ExecContext(t.Context(), "DELETE FROM sqllock_lease")
	must(t, err)
	if code := p.exit(); code != 76 {
		t.Errorf("exit code %d, want 76", code)
	}
	lines := mustLog(t, p.errors(), "lock acquired", "lock lost", "the command was ended")
	cause, _ := lines[1]["err"].(string)
	if stalled := strings.Contains(cause, "lock expired"); !stalled && !strings.Contains(cause, "its lease was ended") || lines[1]["level"] != "WARN" {
		t.Errorf("not the cause: %v", lines[1])
	}
	if lines[2]["exit_code"] != 76.0 || lines[2]["level"] != "ERROR" {
		t.Errorf("not the final error: %v", lines[2])
	}
	if strings.Contains(p.errors(), "lock released") {
		t.Errorf("a lost lock was released: %s", p.errors())
	}
}

func TestVerboseTextIsSafeAndNamesTheProgram(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	p := start(t, on(t, db.url), "run", "-v", "a\x1b[2J\nb", "--", "true")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	text := p.errors()
	if strings.Contains(text, "\x1b") || !strings.Contains(text, `a\x1b[2J\nb`) || !strings.Contains(text, `msg="lock acquired"`) {
		t.Errorf("it said %q", text)
	}
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "sqllock: time=") {
			t.Errorf("a line of whom? %s", line)
		}
	}
}

func TestFinalErrorsAreJSONToo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	e := on(t, db.url)
	holder := held(t, e, "busy\u202e")
	for want, args := range map[int][]string{
		75:  {"--wait", "0", "busy\u202e", "--", "true"},
		127: {"x", "--", "no-such-program"},
		64:  {"x"},
		0:   {"x", "--", "true"},
	} {
		code, _, stderr := runHere(t, e, append([]string{"run", "--log-format", "json"}, args...)...)
		lines := logged(t, stderr)
		if code != want || code != 0 && (len(lines) != 1 || lines[0]["exit_code"] != float64(code)) || code == 0 && stderr != "" {
			t.Errorf("%q: code %d, want %d; stderr %s", args, code, want, stderr)
		}
		if strings.Contains(stderr, "\u202e") {
			t.Errorf("not printable: %q", stderr)
		}
	}
	holder.letGo()
}
