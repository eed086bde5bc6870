package main

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestBenchMeasuresAndLeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	measure := func(t *testing.T, db testPlace, kind, names string) {
		t.Helper()
		var got struct {
			Server   string
			Kind     string
			Duration float64 `json:"duration_seconds"`
			Results  []struct {
				Name      string
				Count     int
				Median    float64  `json:"median_seconds"`
				P99       float64  `json:"p99_seconds"`
				Mean      float64  `json:"mean_seconds"`
				AtOnce    float64  `json:"at_once"`
				PerSecond *float64 `json:"per_second"`
			}
		}
		out := call(t, on(t, db.url), 0, nil, "bench", "--kind", kind, "--duration", "20ms", "--json")
		must(t, json.Unmarshal([]byte(out), &got))
		var all []string
		for _, r := range got.Results {
			all = append(all, r.Name)
			paced := kind == kindSession && r.Name == "renewal_1000_locks"
			if r.Count < 1 || r.Mean <= 0 || r.AtOnce < 1 || r.Median <= 0 || r.P99 < r.Median || (r.PerSecond == nil) != paced {
				t.Errorf("not measured: %+v", r)
			}
			if r.PerSecond != nil && math.Abs(*r.PerSecond*r.Mean-r.AtOnce) > 1e-6*r.AtOnce {
				t.Errorf("a mean of %v s and %v a second do not agree: %s", r.Mean, *r.PerSecond, r.Name)
			}
		}
		if strings.Join(all, " ") != names {
			t.Errorf("measured %s, want %s", all, names)
		}
		engine := map[string]string{"postgres": "PostgreSQL ", "mysql": "MySQL ", "mariadb": "MariaDB ", "sqlite": "SQLite "}[string(db.Engine)]
		if !strings.HasPrefix(got.Server, engine) || got.Kind != kind || got.Duration != 0.02 {
			t.Errorf("the report is %s", out)
		}
	}
	onEach(t, func(t *testing.T, db testPlace) {
		measure(t, db, kindLease, "round_trip two_writes pair pair_16_names handoff renewal_1000_locks")
		db.isEmpty(t)
		if db.Engine != "sqlite" {
			measure(t, db, kindSession, "round_trip pair pair_16_names handoff renewal_1000_locks")
		}
	})
}

// isEmpty checks that the tables of leases are empty.
func (db testPlace) isEmpty(t *testing.T) {
	t.Helper()
	for _, table := range []string{"sqllock_lock", "sqllock_lease", "sqllock_permit"} {
		var rows int
		must(t, db.Get(&rows, "SELECT COUNT(*) FROM "+table))
		if rows != 0 {
			t.Errorf("%d rows are left in %s", rows, table)
		}
	}
}

func TestASignalEndsBenchAndLeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		for sig, test := range map[syscall.Signal]struct {
			duration time.Duration
			when     string
		}{
			syscall.SIGINT:  {time.Hour, "COUNT(*) = 1"},   // during the first measurement
			syscall.SIGTERM: {time.Second, "COUNT(*) > 1"}, // while several Lockers hand over a lock, or one holds many
		} {
			p := signalBench(t, db, sig, test.duration, test.when)
			for d := 2 * test.duration; p.exit() == 0 && d < 10*time.Second; d *= 2 { // it ended before, on a machine that stalled
				p = signalBench(t, db, sig, d, test.when)
			}
			p.exits(128+int(sig), "ended by a signal", sig.String())
			db.isEmpty(t)
		}
	})
}

// signalBench sends a signal to bench, when this is so of the leases or bench has ended.
func signalBench(t *testing.T, db testPlace, sig syscall.Signal, duration time.Duration, when string) *process {
	t.Helper()
	p := start(t, on(t, db.url), "bench", "--duration", duration.String())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.stdout.WriteTo(io.Discard) // until bench has ended
	}()
	locktest.Eventually(t, "a time for the signal", func() bool {
		select {
		case <-ended:
			return true
		default:
		}
		var now bool
		must(t, db.Get(&now, "SELECT CASE WHEN "+when+" THEN 1 ELSE 0 END FROM sqllock_lease"))
		return now
	})
	must(t, p.cmd.Process.Signal(sig))
	return p
}

func TestBenchThatCannotReleaseLeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqliteFile(t)
	_, err := db.ExecContext(t.Context(), `CREATE TRIGGER refusing BEFORE UPDATE ON sqllock_lock WHEN NEW.lease_id IS NULL
		BEGIN SELECT RAISE(ABORT, 'not released'); END`)
	must(t, err)
	call(t, on(t, db.url), 69, []string{"not released"}, "bench", "--duration", "10ms")
	db.isEmpty(t)
}

func TestBenchDoesNotWaitForTheRowsOfOthers(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db testPlace) {
		if db.Engine == "sqlite" {
			t.Skip("it has no locks of rows")
		}
		call(t, on(t, db.url), 0, nil, "run", "sqllock bench0", "--", "true") // this name sorts right after those of bench
		tx, err := db.Beginx()
		must(t, err)
		defer func() { must(t, tx.Rollback()) }()
		var token int
		must(t, tx.Get(&token, "SELECT token FROM sqllock_lock WHERE name = 'sqllock bench0' FOR UPDATE"))
		call(t, on(t, db.url), 0, nil, "bench", "--duration", "20ms")
	})
}

func TestBenchWithoutTables(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := servers["PostgreSQL"](t)
	call(t, on(t, db.DSN), 69, []string{"sqllock schema apply"}, "bench", "--duration", "10ms")
}

func TestBenchInATable(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	code, stdout, stderr := runHere(t, env{"SQLLOCK_DB": sqliteFile(t).url}, "bench", "--duration", "10ms")
	if code != 0 || stderr != "" || !strings.Contains(stdout, "SQLite ") || !strings.Contains(stdout, "round trip, SELECT 1") {
		t.Errorf("code %d, stdout %s, stderr %s", code, stdout, stderr)
	}
	for line := range strings.Lines(stdout) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
