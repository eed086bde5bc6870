package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
)

// watches starts sqllock watch, and returns it with a function that waits for the next event.
func watches(t *testing.T, e env, args ...string) (*process, func(want string)) {
	t.Helper()
	w := start(t, e, append([]string{"watch", "--kind", "lease", "--interval", "200ms"}, args...)...)
	return w, func(want string) {
		t.Helper()
		when, event, _ := strings.Cut(w.line(), "  ")
		if at, err := time.Parse(time.RFC3339, when); err != nil || time.Since(at).Abs() > patience {
			t.Errorf("the time of an event is %q", when)
		}
		if !strings.HasPrefix(event+",", want+",") {
			t.Fatalf("the next event is %q, want %q", event, want)
		}
	}
}

// happensTo formats an event for the lease of a process that held has started.
func (p *process) happensTo(name, event string, token int) string {
	p.t.Helper()
	who := leaseOf(p.t, p, name)
	return fmt.Sprintf("%s  %s  %s, %s/%d, token %d", name, event, who.Owner, who.Host, who.PID, token)
}

func TestWatchPrintsWhatHappensToLeases(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		first := held(t, e, "--ttl", "1h", "app/x")
		held(t, e, "other")
		w, next := watches(t, e, "app/")
		next(first.happensTo("app/x", eventHeld, 1))

		second := start(t, e, "run", "--ttl", "1h", "app/x", "--", "sh", "-c", "echo held; exec cat")
		next(first.happensTo("app/x", eventWaitedFor, 1))
		first.letGo()
		second.expect("held")
		next(first.happensTo("app/x", eventReleased, 1))
		next(second.happensTo("app/x", eventTaken, 2))

		db.expire(t, second)
		next(second.happensTo("app/x", eventExpired, 2))
		third := held(t, e, "--ttl", "1h", "app/x")
		next(third.happensTo("app/x", eventTakenOver, 3))

		call(t, e, 0, nil, "release", "--force", "app/x")
		next(third.happensTo("app/x", eventTakenAway, 3))

		call(t, e, 0, nil, "run", "--at-least", "1h", "app/kept", "--", "true")
		if line := w.line(); !strings.HasSuffix(line, "  app/kept  kept  -, token 1") {
			next("app/kept  kept  -, token 1") // the acquisition was reported, too
		}
		must(t, w.cmd.Process.Signal(syscall.SIGTERM))
		w.exits(128 + 15)
	})
}

// Whatever happens while watch is stopped happens between two of its readings.
func TestWatchTakesAQuickHolderForNoForce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		e := on(t, db.url)
		first := held(t, e, "--ttl", "1h", "x")
		w, next := watches(t, e)
		next(first.happensTo("x", eventHeld, 1))
		must(t, w.cmd.Process.Signal(syscall.SIGSTOP))
		first.letGo()
		call(t, e, 0, nil, "run", "x", "--", "true")
		must(t, w.cmd.Process.Signal(syscall.SIGCONT))
		next(first.happensTo("x", eventReleased, 1))
	})
}

func TestWatchPrintsWhatHappensToSessionLocks(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db testPlace) {
		if db.Engine == "mariadb" {
			return // it does not show them unless it is configured to
		}
		e := on(t, db.url)
		first := held(t, e, "--kind", "session", "x")
		w := start(t, e, "watch", "--kind", "session", "--interval", "200ms", "--json", "x")
		const some = -1 // or none: between two slices of its wait a waiter is not in the server's queue
		next := func(want string, waiters int) {
			t.Helper()
			var got jsonEvent
			for got.Event == "" || got.Event == eventWaitedFor && want == eventReleased {
				got = jsonEvent{}
				must(t, json.Unmarshal([]byte(w.line()), &got))
			}
			if got.Event != want || got.Name != "x" || got.Session == 0 || waiters != some && got.Waiters != waiters || time.Since(got.Time).Abs() > patience {
				t.Fatalf("the event is %+v, want %s with %d waiting", got, want, waiters)
			}
		}
		next(eventHeld, 0)
		second := start(t, e, "run", "--kind", "session", "x", "--", "sh", "-c", "echo held; exec cat")
		next(eventWaitedFor, 1)
		first.letGo()
		second.expect("held")
		next(eventReleased, some)
		next(eventTaken, 0)
		call(t, e, 0, nil, "release", "--force", "--kind", "session", "x")
		next(eventReleased, 0)
	})
}

// A connection that was cut is opened again, and the events continue.
func TestWatchOutlivesItsConnections(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := servers["PostgreSQL"](t)
	e := on(t, db.DSN)
	call(t, e, 0, nil, "schema", "apply")
	p := held(t, e, "--ttl", "1h", "x")
	w, next := watches(t, e)
	next(p.happensTo("x", eventHeld, 1))
	_, err := db.ExecContext(t.Context(), "ALTER TABLE sqllock_lock RENAME COLUMN token TO hidden")
	must(t, err)
	w.says("it is asked again\n")
	_, err = db.ExecContext(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
	must(t, err)
	_, err = db.ExecContext(t.Context(), "ALTER TABLE sqllock_lock RENAME COLUMN hidden TO token")
	must(t, err)
	w.says("the database answers again\n")
	call(t, e, 0, nil, "release", "--force", "x")
	next(p.happensTo("x", eventTakenAway, 1))
	if n := strings.Count(w.errors(), "\n"); n != 2 {
		t.Errorf("it says %q", w.errors())
	}
}

func TestWatchRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	e := on(t, sqliteFile(t).url)
	call(t, e, 64, []string{"usage: sqllock watch"}, "watch", "a", "b")
	call(t, e, 64, []string{"--interval is less than 200ms"}, "watch", "--interval", "100ms")
	call(t, e, 64, []string{`"--kind" flag: it is`}, "watch", "--kind", "table")
	call(t, e, 64, []string{"SQLite has no sessions"}, "watch", "--kind", "session")
	call(t, on(t, "postgres://127.0.0.1:1/x"), 69, []string{"refused"}, "watch")
}
