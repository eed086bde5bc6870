package scenario

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// latency is one caller that acquires and releases a free name, alone on the server.
func latency(ctx context.Context, r *Run) error {
	const scenario = "latency"
	var all []*alone
	defer func() {
		for _, a := range all {
			r.failed(scenario, a.contender, 0, a.client.Close())
		}
	}()
	for _, c := range r.contenders(func(lock.Kind) bool { return true }) {
		client, err := c.Open(ctx, c.server.Address)
		if err != nil {
			r.failed(scenario, c, 0, err)
			continue
		}
		a := &alone{contender: c, client: client, name: r.name(scenario)}
		all = append(all, a)
		_, _, a.err = a.pairs(ctx, 10) // opens the connection, and makes the row
	}
	for range r.Plan.LatencyRounds {
		for _, a := range all {
			if a.err != nil {
				continue
			}
			var acquire, release time.Duration
			if acquire, release, a.err = a.pairs(ctx, r.Plan.LatencyPairs); a.err != nil {
				continue
			}
			per := func(d time.Duration) float64 {
				return float64(d.Nanoseconds()) / 1e3 / float64(r.Plan.LatencyPairs)
			}
			r.add(scenario, a.contender, 0, values{"acquire_us": per(acquire), "release_us": per(release), "pair_us": per(acquire + release)})
		}
	}
	for _, a := range all {
		r.failed(scenario, a.contender, 0, a.err)
	}
	return context.Cause(ctx)
}

// alone is a client whose lock nobody else wants.
type alone struct {
	contender
	client lock.Client
	name   string
	err    error // it is left out
}

// pairs acquires and releases the lock n times.
func (a *alone) pairs(ctx context.Context, n int) (acquire, release time.Duration, err error) {
	for range n {
		began := time.Now()
		free, err := a.client.Acquire(ctx, a.name)
		if err != nil {
			return 0, 0, err
		}
		acquired := time.Now()
		if err := free(ctx); err != nil {
			return 0, 0, err
		}
		acquire += acquired.Sub(began)
		release += time.Since(acquired)
	}
	return acquire, release, nil
}
