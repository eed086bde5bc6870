package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

func TestTheCommandKnowsItsLock(t *testing.T) {
	t.Parallel()
	const show = `echo "$SQLLOCK_NAME/${SQLLOCK_TOKEN-none}/$SQLLOCK_OWNER/${SQLLOCK_EXPIRES+expires}"`
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		for _, want := range []string{"a name/1/sqllock run sh/expires\n", "a name/2/sqllock run sh/expires\n"} {
			if got := call(t, e, 0, nil, "run", "a name", "--", "sh", "-c", show); got != want {
				t.Errorf("the command saw %q, want %q", got, want)
			}
		}
		if got := call(t, e, 0, nil, "run", "--owner", "the boss", "x", "--", "sh", "-c", show); got != "x/1/the boss/expires\n" {
			t.Errorf("the command saw %q, want the boss", got)
		}
		if db.Engine == "sqlite" {
			return
		}
		e["SQLLOCK_TOKEN"], e["SQLLOCK_OWNER"], e["SQLLOCK_EXPIRES"] = "an outer lock's", "an outer lock's", "an outer lock's"
		got := call(t, e, 0, nil, "run", "--kind", "session", "s", "--", "sh", "-c", show)
		if !strings.HasPrefix(got, "s/none/sqllock@") || !strings.HasSuffix(got, "/\n") {
			t.Errorf("the command saw %q, want s, no token, the session's own name and no end", got)
		}
	})
}

func TestTheCommandKnowsWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	db := sqliteFile(t)
	began := time.Now()
	text := call(t, on(t, db.url), 0, nil, "run", "--ttl", "1h", "x", "--", "sh", "-c", "echo $SQLLOCK_EXPIRES")
	over, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	must(t, err)
	if !strings.HasSuffix(text, "Z\n") {
		t.Errorf("%q is not in UTC", text)
	}
	// The holder trusts it for 5/6 of the TTL, counted from before the request.
	const trusted = 50 * time.Minute
	if over.Before(began.Add(trusted-time.Millisecond)) || over.After(time.Now().Add(trusted)) {
		t.Errorf("it is over %v after the start, want %v", over.Sub(began), trusted)
	}
}

func TestARunThatMayWaitForItselfSaysSo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, test := range []struct {
		outer, inner string
		code         int
		warns        bool
	}{
		{"x", "--wait " + vainly + " x", 75, true},
		{"x", "--wait " + vainly + " --verbose x", 75, true},
		{"x", "--wait " + vainly + " --shared x", 75, true},
		{"--shared x", "--wait " + vainly + " x", 75, true},
		{"--kind session x", "--wait " + vainly + " --kind session x", 75, true},
		{"x", "--wait 0 x", 75, false},
		{"x", "y", 0, false},
		{"x", "--kind session x", 0, false},
		{"--kind session x", "x", 0, false},
		{"--shared x", "--shared x", 0, false},
		{"--limit 2 x", "--limit 2 x", 0, false},
	} {
		t.Run(test.inner+" below "+test.outer, func(t *testing.T) {
			t.Parallel()
			e := on(t, sqltest.Postgres(t).DSN)
			call(t, e, 0, nil, "schema", "apply")
			args := slices.Concat([]string{"run"}, strings.Fields(test.outer), []string{"--", raceless, "run"}, strings.Fields(test.inner), []string{"--", "true"})
			p := startAs(t, raceless, e, args...)
			must(t, p.stdin.Close())
			code, text := p.exit(), p.errors()
			if warned := strings.Contains(text, "this may wait for itself"); code != test.code || warned != test.warns {
				t.Errorf("exit code %d, stderr %q", code, text)
			}
		})
	}
}
