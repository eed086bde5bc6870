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
				r.rate(ctx, "names", c, n, func(base string, i int) string { return fmt.Sprint(base, " ", i) })
			}
		}
		for _, n := range r.Plan.OneOf {
			for _, c := range r.contenders(shared) {
				r.rate(ctx, "one name", c, n, func(base string, _ int) string { return base })
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// rate measures how many locks per second n goroutines acquire and release.
func (r *Run) rate(ctx context.Context, scenario string, c contender, n int, name func(base string, i int) string) {
	perSecond, err := r.rateOf(ctx, c, n, func(i int) string { return name("throughput of "+c.ID(), i) })
	if err != nil {
		r.failed(scenario, c, n, err)
		return
	}
	r.add(scenario, c, n, values{"pairs_s": perSecond})
}

func (r *Run) rateOf(ctx context.Context, c contender, n int, name func(i int) string) (perSecond float64, err error) {
	client, err := c.Open(ctx, c.server.Address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	err = in(n, func(i int) error { return pair(ctx, client, fmt.Sprint("to open a connection ", i)) })
	if err != nil {
		return 0, err
	}
	during, cancel := context.WithTimeout(ctx, r.Plan.ThroughputDuration)
	defer cancel()
	var pairs atomic.Int64
	began := time.Now()
	var took atomic.Int64
	err = in(n, func(i int) error {
		name := name(i)
		for during.Err() == nil {
			release, err := client.Acquire(during, name)
			if err == nil {
				err = release(ctx)
			}
			if err != nil {
				if during.Err() != nil {
					return nil
				}
				return err
			}
			pairs.Add(1)
			took.Store(int64(time.Since(began)))
		}
		return nil
	})
	return float64(pairs.Load()) / max(r.Plan.ThroughputDuration, time.Duration(took.Load())).Seconds(), err
}
