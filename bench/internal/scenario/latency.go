package scenario

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// latency is one caller that acquires and releases a free name, alone on the server.
func latency(ctx context.Context, r *Run) error {
	const scenario = "latency"
	type open struct {
		contender
		client lock.Client
		name   string
	}
	var all []open
	defer func() {
		for _, o := range all {
			r.failed(scenario, o.contender, 0, o.client.Close())
		}
	}()
	for _, c := range r.contenders(func(lock.Kind) bool { return true }) {
		client, err := c.Open(ctx, c.server.Address)
		if err != nil {
			return err
		}
		o := open{c, client, r.name(scenario)}
		all = append(all, o)
		for range 10 { // opens the connection, and makes the row
			if err := pair(ctx, client, o.name); err != nil {
				return err
			}
		}
	}
	for range r.Plan.LatencyRounds {
		for _, o := range all {
			var acquire, release time.Duration
			for range r.Plan.LatencyPairs {
				began := time.Now()
				free, err := o.client.Acquire(ctx, o.name)
				if err != nil {
					return err
				}
				acquired := time.Now()
				if err := free(ctx); err != nil {
					return err
				}
				acquire += acquired.Sub(began)
				release += time.Since(acquired)
			}
			per := func(d time.Duration) float64 {
				return float64(d.Nanoseconds()) / 1e3 / float64(r.Plan.LatencyPairs)
			}
			r.add(scenario, o.contender, 0, values{"acquire_us": per(acquire), "release_us": per(release), "pair_us": per(acquire + release)})
		}
	}
	return nil
}
