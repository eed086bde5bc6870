package scenario

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// throughput is one process whose goroutines acquire and release locks, each on a name of its own, or all on one.
func throughput(ctx context.Context, r *Run) error {
	names := func(k lock.Kind) bool { return !k.OneName }
	shared := func(k lock.Kind) bool { return k.Waits && !k.OneName }
	for range r.Plan.ThroughputRounds {
		for _, n := range r.Plan.Goroutines {
			for _, c := range r.contenders(names) {
				r.rate(ctx, "names", c, n)
			}
		}
		for _, n := range r.Plan.OneOf {
			for _, c := range r.contenders(shared) {
				r.rate(ctx, oneName, c, n)
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

const oneName = "one name"

// rate measures how many locks per second n goroutines acquire and release.
func (r *Run) rate(ctx context.Context, scenario string, c contender, n int) {
	perSecond, err := r.rateOf(ctx, c, n, scenario == oneName)
	if err != nil {
		r.failed(scenario, c, n, err)
		return
	}
	r.add(scenario, c, n, values{"pairs_s": perSecond})
}

func (r *Run) rateOf(ctx context.Context, c contender, n int, shared bool) (perSecond float64, err error) {
	client, err := c.Open(ctx, c.server.Address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	base := r.name("throughput")
	own := func(i int) string { return fmt.Sprint(base, " ", i) }
	// Opens the connections, and makes the rows.
	if err := in(n, func(i int) error { return pair(ctx, client, own(i)) }); err != nil {
		return 0, err
	}
	during, cancel := context.WithTimeout(ctx, r.Plan.ThroughputDuration)
	defer cancel()
	waiting := ctx // a name that nobody else wants is not waited for, and what has begun is finished
	if shared {
		waiting = during
	}
	var pairs, took atomic.Int64
	began := time.Now()
	err = in(n, func(i int) error {
		name := own(i)
		if shared {
			name = base
		}
		for during.Err() == nil {
			release, err := client.Acquire(waiting, name)
			if err != nil && waiting.Err() != nil {
				return nil
			}
			if err == nil {
				err = release(ctx)
			}
			if err != nil {
				return err
			}
			pairs.Add(1)
			took.Store(int64(time.Since(began)))
		}
		return nil
	})
	return float64(pairs.Load()) / max(r.Plan.ThroughputDuration, time.Duration(took.Load())).Seconds(), err
}
