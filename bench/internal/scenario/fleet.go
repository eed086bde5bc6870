package scenario

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/bench/internal/fleet"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// contend is n processes that want one name. Each holds it for a millisecond, and wants it again at once.
func contend(ctx context.Context, r *Run) error {
	if err := r.fleet.Grow(slices.Max(r.Plan.Fleets)); err != nil {
		return err
	}
	for range r.Plan.FleetRounds {
		for _, n := range r.Plan.Fleets {
			for _, c := range r.contenders(waits) {
				v, err := r.contendOnce(ctx, c, r.fleet[:n])
				if err != nil {
					r.failed("fleet", c, n, err)
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					r.fleet.End() // some may still wait
					if err := r.fleet.Grow(slices.Max(r.Plan.Fleets)); err != nil {
						return err
					}
					continue
				}
				r.add("fleet", c, n, v)
			}
		}
	}
	return nil
}

// warm returns a name for the connections to be opened with; "" for a kind that has one name only.
func (c contender) warm() string {
	if c.OneName {
		return ""
	}
	return "to open a connection"
}

func (r *Run) contendOnce(ctx context.Context, c contender, f fleet.Fleet) (v values, err error) {
	others, err := c.server.OthersConnections()
	if err != nil {
		return nil, err
	}
	if err := f.Open(c.ID(), c.server.Address, 1, c.warm()); err != nil {
		return nil, err
	}
	if err := f.Run(r.name("fleet"), Hold); err != nil {
		return nil, err
	}
	if err := pause(ctx, r.Plan.FleetWarm*time.Duration(1+len(f)/8)); err != nil {
		return nil, err
	}
	f.Served()
	before, err := c.server.Statements(ctx)
	if err != nil {
		return nil, err
	}
	cpu := c.server.CPU()
	from := time.Now()
	length := r.Plan.FleetRun
	if len(f) > 100 { // so that each is served more than once
		length *= 2
	}
	if err := pause(ctx, length); err != nil {
		return nil, err
	}
	to := time.Now()
	spent := c.server.CPU().Since(cpu)
	after, errStatements := c.server.Statements(ctx)
	connections, errConnections := c.server.Connections()
	spans, err := f.Cancel()
	if err := errors.Join(err, errStatements, errConnections); err != nil {
		return nil, err
	}
	v = account(spans, from, to)
	v["statements_handoff"] = float64(after-before) / max(v["handoffs_s"]*to.Sub(from).Seconds(), 1)
	v["connections"] = float64(connections - others)
	if cpu != nil {
		v["cpu_percent"] = 100 * spent.Seconds() / to.Sub(from).Seconds()
	}
	return v, f.Close()
}

// owned is a span and the client that it is of.
type owned struct {
	fleet.Span
	client int
}

// account says what the spans of clients say about the time from … to.
func account(spans [][]fleet.Span, from, to time.Time) values {
	served := make([]float64, len(spans))
	var all []owned
	var holds []float64
	for client, own := range spans {
		for _, s := range own {
			if s.From >= from.UnixNano() && s.From < to.UnixNano() {
				served[client]++
				all = append(all, owned{s, client})
				holds = append(holds, float64(s.To-s.From)/1e3)
			}
		}
	}
	slices.SortFunc(all, func(a, b owned) int { return int(a.From - b.From) })
	var gaps []float64
	overlaps, again := 0, 0
	for i := 1; i < len(all); i++ {
		gap := float64(all[i].From-all[i-1].To) / 1e3
		if gap < 0 {
			overlaps++
		}
		if all[i].client == all[i-1].client {
			again++
		}
		gaps = append(gaps, gap)
	}
	slices.Sort(gaps)
	slices.Sort(holds)
	slices.Sort(served)
	unserved := 0
	for _, n := range served {
		if n == 0 {
			unserved++
		}
	}
	return values{
		"handoffs_s": float64(len(all)) / to.Sub(from).Seconds(),
		"hold_us":    result.Percentile(holds, 50),
		"gap_p50_us": result.Percentile(gaps, 50),
		"gap_p99_us": result.Percentile(gaps, 99),
		"served_min": served[0],
		"served_max": served[len(served)-1],
		"unserved":   float64(unserved),
		"again":      100 * float64(again) / float64(max(len(gaps), 1)),
		"overlaps":   float64(overlaps),
	}
}
