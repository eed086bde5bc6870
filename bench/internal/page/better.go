package page

import (
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// figure is a figure by which this library is compared with others.
type figure struct {
	what     string
	scenario string
	n        int
	metric   string
	more     bool    // is better
	floor    float64 // below which there is no difference
}

func compared(r *result.Result) []figure {
	all := []figure{
		{"acquire and release alone, µs", "latency", 0, "pair_us", false, 0},
		{"next holder after a kill, s", "fault/kill", 0, "next_s", false, 0.05},
		{"next holder after a stop, s", "fault/stop", 0, "next_s", false, 0.05},
		{"next holder after a cut, s", "fault/cut", 0, "next_s", false, 0.05},
		{"first acquire, round trips", "network", 0, "first_rt", false, 0},
		{"handover, round trips", "network", 0, "handover_rt", false, 0},
	}
	for _, f := range []figure{
		{"pairs/s on names of their own, %d goroutines", "names", 0, "pairs_s", true, 0},
		{"pairs/s on one name, %d goroutines", "one name", 0, "pairs_s", true, 0},
		{"handoffs/s, %d processes", "fleet", 0, "handoffs_s", true, 0},
		{"statements a handoff, %d processes", "fleet", 0, "statements_handoff", false, 0},
		{"statements/s while %d wait", "waiting", 0, "statements_s", false, 1},
		{"connections while %d wait", "waiting", 0, "connections", false, 0},
	} {
		if sizes := r.Sizes(f.scenario); len(sizes) > 0 { // one size says enough here
			n := sizes[len(sizes)/2]
			all = append(all, figure{fmt.Sprintf(f.what, n), f.scenario, n, f.metric, f.more, f.floor})
		}
	}
	return all
}

// better has a table for each kind of this library: where another library on the same server, or one of Redis or etcd, is
// better by more than a tenth.
func better(r *result.Result) string {
	text := ""
	for _, k := range lock.Kinds() {
		if k.Role != lock.Library {
			continue
		}
		t := newTable(label(k), "here", "better")
		rows := 0
		for _, f := range compared(r) {
			if others := f.better(r, k); len(others) > 0 {
				ours, _ := r.Of(f.scenario, k.ID(), f.n, f.metric)
				t.row(f.what, number(ours.Median), strings.Join(others, ", "))
				rows++
			}
		}
		if rows > 0 {
			text += t.String() + "\n"
		}
	}
	if text == "" {
		return "Nowhere.\n"
	}
	return strings.Replace(strings.TrimSuffix(text, "\n"), "|---|---:|---:|", "|---|---:|---|", -1)
}

// better returns the libraries that are better than a kind by more than a tenth, with their values.
func (f figure) better(r *result.Result, k lock.Kind) (others []string) {
	ours, ok := r.Of(f.scenario, k.ID(), f.n, f.metric)
	if !ok {
		return nil
	}
	for _, other := range lock.Kinds() {
		theirs, ok := r.Of(f.scenario, other.ID(), f.n, f.metric)
		elsewhere := other.Engine == lock.Redis || other.Engine == lock.Etcd
		if !ok || other.Role != lock.Peer || other.Engine != k.Engine && !elsewhere {
			continue
		}
		a, b := max(theirs.Median, f.floor), max(ours.Median, f.floor)
		if f.more && a <= 1.1*b || !f.more && a >= b/1.1 {
			continue
		}
		name := other.Name
		if elsewhere {
			name = string(other.Engine) + "'s " + name
		}
		name += " " + number(theirs.Median)
		if unserved, _ := r.Of(f.scenario, other.ID(), f.n, "unserved"); unserved.Median > 0 {
			name += fmt.Sprintf(" (%.0f of %d were never served)", unserved.Median, f.n)
		}
		others = append(others, name)
	}
	return others
}
