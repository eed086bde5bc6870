package page

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

func run(r *result.Result) string {
	m := r.Machine
	var servers, libraries []string
	for _, e := range lock.Engines() {
		if v, ok := r.Servers[string(e)]; ok {
			servers = append(servers, v)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(r.Versions)) {
		name := strings.TrimPrefix(p, "github.com/")
		if base := path.Base(name); strings.HasPrefix(base, "v") && len(base) == 2 {
			name = path.Dir(name)
		}
		libraries = append(libraries, name+" "+r.Versions[p])
	}
	t := newTable("", "")
	t.row("Date", r.Began.Format(time.DateOnly)+", "+r.Took)
	t.row("Machine", fmt.Sprintf("%s, %d cores, %s; load %s before", m.CPU, m.Cores, m.Memory, m.Load))
	t.row("System", m.System+", "+m.Go)
	t.row("Disk", fmt.Sprintf("a synced write of 8 kB takes %.0f µs", m.Sync))
	t.row("Servers", strings.Join(servers, "; "))
	t.row("Libraries", strings.Join(libraries, ", "))
	text := strings.Replace(t.String(), "|---|---:|", "|---|---|", 1)
	text += failures(r)
	if r.Quick {
		text += "\n**This was a quick run, which shows that all works. Its figures mean nothing.**\n"
	}
	return text
}

// failures says what could not be measured, and whether two processes ever had a lock at the same time.
func failures(r *result.Result) (text string) {
	overlaps := 0.0
	for _, s := range r.Samples {
		switch s.Metric {
		case "error":
			text += fmt.Sprintf("\nNot measured: %s, %s, %d: %s\n", s.Scenario, s.Kind, s.N, strings.Join(strings.Fields(s.Note), " "))
		case "overlaps":
			overlaps += s.Value
			if s.Value > 0 {
				text += fmt.Sprintf("\n**Two processes had the lock at the same time**: %s, %d processes, %.0f times.\n", s.Kind, s.N, s.Value)
			}
		}
	}
	if overlaps == 0 {
		text += "\nNever did two processes of a fleet have the lock at the same time.\n"
	}
	return text
}

// each calls f for each kind that was measured in a scenario.
func each(r *result.Result, scenario string, f func(k lock.Kind)) {
	measured := map[string]bool{}
	for _, s := range r.Samples {
		if s.Scenario == scenario && s.Metric != "error" {
			measured[s.Kind] = true
		}
	}
	for _, k := range lock.Kinds() {
		if measured[k.ID()] {
			f(k)
		}
	}
}

func latency(r *result.Result) string {
	t := newTable("acquire and release, µs", "acquire", "release", "both", "× bare")
	each(r, "latency", func(k lock.Kind) {
		of := func(id, metric string) (result.Summary, bool) { return r.Of("latency", id, 0, metric) }
		both, ok := of(k.ID(), "pair_us")
		ratio := absent
		if b, found := bareOf(k); found {
			if bare, measured := of(b.ID(), "pair_us"); measured && ok {
				ratio = fmt.Sprintf("%.2f", both.Median/bare.Median)
			}
		}
		t.row(label(k), median(of(k.ID(), "acquire_us")), median(of(k.ID(), "release_us")), spread(both, ok), ratio)
	})
	return t.String()
}

func throughput(r *result.Result, scenario string) string {
	return bySize(r, scenario, "pairs_s", "pairs a second, goroutines:")
}

func rates(r *result.Result) string {
	return bySize(r, "fleet", "handoffs_s", "handoffs a second, processes:")
}

func bySize(r *result.Result, scenario, metric, head string) string {
	sizes := r.Sizes(scenario)
	columns := []string{head}
	for _, n := range sizes {
		columns = append(columns, fmt.Sprint(n))
	}
	t := newTable(columns...)
	each(r, scenario, func(k lock.Kind) {
		cells := []string{label(k)}
		for _, n := range sizes {
			cells = append(cells, spread(r.Of(scenario, k.ID(), n, metric)))
		}
		t.row(cells...)
	})
	return t.String()
}

func fleets(r *result.Result) string {
	text := ""
	for _, n := range r.Sizes("fleet") {
		if n < 8 {
			continue
		}
		t := newTable(fmt.Sprintf("%d processes", n), "handoffs/s", "× bare", "p50, ms", "p99, ms", "served least–most", "never served",
			"itself again, %", "statements a handoff", "connections", "server CPU, %")
		each(r, "fleet", func(k lock.Kind) {
			of := func(metric string) string { return median(r.Of("fleet", k.ID(), n, metric)) }
			ms := func(metric string) string {
				s, ok := r.Of("fleet", k.ID(), n, metric)
				s.Median /= 1e3
				return median(s, ok)
			}
			t.row(label(k), of("handoffs_s"), ofBare(r, k, n), ms("gap_p50_us"), ms("gap_p99_us"), of("served_min")+"–"+of("served_max"), of("unserved"),
				of("again"), of("statements_handoff"), of("connections"), of("cpu_percent"))
		})
		text += t.String() + "\n"
	}
	return strings.TrimSuffix(text, "\n")
}

// ofBare compares the handoffs of a fleet with those of the bare lock or, where that cannot wait, with one handoff in the
// time of a hold, a bare acquire and a bare release.
func ofBare(r *result.Result, k lock.Kind, n int) string {
	b, found := bareOf(k)
	got, ok := r.Of("fleet", k.ID(), n, "handoffs_s")
	if !found || !ok {
		return absent
	}
	most, ok := r.Of("fleet", b.ID(), n, "handoffs_s")
	if !b.Waits {
		hold, measured := r.Of("fleet", k.ID(), n, "hold_us")
		pair, known := r.Of("latency", b.ID(), 0, "pair_us")
		most.Median, ok = 1e6/(hold.Median+pair.Median), measured && known
	}
	if !ok || most.Median == 0 {
		return absent
	}
	return fmt.Sprintf("%.2f", got.Median/most.Median)
}

func waiting(r *result.Result) string {
	sizes := r.Sizes("waiting")
	columns := []string{"while nothing happens"}
	for _, metric := range []string{"statements/s", "server CPU, %", "connections"} {
		for _, n := range sizes {
			columns = append(columns, fmt.Sprintf("%s, %d", metric, n))
		}
	}
	t := newTable(columns...)
	each(r, "waiting", func(k lock.Kind) {
		cells := []string{label(k)}
		for _, metric := range []string{"statements_s", "cpu_percent", "connections"} {
			for _, n := range sizes {
				cells = append(cells, median(r.Of("waiting", k.ID(), n, metric)))
			}
		}
		t.row(cells...)
	})
	return t.String()
}

func faults(r *result.Result) string {
	t := newTable("seconds until the next one has the lock", "killed", "stopped", "cut off")
	each(r, "fault/kill", func(k lock.Kind) {
		cells := []string{label(k)}
		for _, fault := range []string{"fault/kill", "fault/stop", "fault/cut"} {
			cell := spread(r.Of(fault, k.ID(), 0, "next_s"))
			if not, ok := r.Of(fault, k.ID(), 0, "not_by_s"); ok {
				cell = fmt.Sprintf("> %.0f", not.Max)
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	})
	return t.String()
}

func network(r *result.Result) string {
	t := newTable("round trips", "first acquire", "acquire", "release", "handover")
	each(r, "network", func(k lock.Kind) {
		cells := []string{label(k)}
		for _, metric := range []string{"first_rt", "acquire_rt", "release_rt", "handover_rt"} {
			cells = append(cells, median(r.Of("network", k.ID(), 0, metric)))
		}
		t.row(cells...)
	})
	return t.String()
}
