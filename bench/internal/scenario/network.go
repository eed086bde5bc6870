package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// network is two clients at the other end of a slow network: how many round trips everything takes. The kinds take part at
// the same time, since most of the time they wait for the network.
func network(ctx context.Context, r *Run) error {
	all := r.contenders(waits)
	return in(len(all), func(i int) error {
		r.failed("network", all[i], 0, r.slow(ctx, all[i]))
		return nil
	})
}

// roundTrips returns a duration in round trips.
func roundTrips(d time.Duration) float64 { return d.Seconds() / (2 * Delay).Seconds() }

func (r *Run) slow(ctx context.Context, c contender) (err error) {
	far, end, err := c.server.Network()
	if err != nil {
		return err
	}
	defer end()
	far.Delay(2 * Delay)
	name := r.name("network")
	var clients [2]lock.Client
	for i := range clients {
		if clients[i], err = c.Open(ctx, c.server.At(far.Address())); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, clients[i].Close()) }()
		began := time.Now()
		release, err := clients[i].Acquire(ctx, name)
		if err != nil {
			return err
		}
		first := time.Since(began)
		if err := release(ctx); err != nil {
			return err
		}
		if i == 0 {
			r.add("network", c, 0, values{"first_rt": roundTrips(first)})
		}
	}
	for i := range r.Plan.NetworkRounds {
		if err := r.slowRound(ctx, c, clients[i%2], clients[1-i%2], name); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	return nil
}

// slowRound has a client acquire and release a name that it knows, and then hand it over to another client that waits.
func (r *Run) slowRound(ctx context.Context, c contender, client, next lock.Client, name string) error {
	began := time.Now()
	release, err := client.Acquire(ctx, name)
	if err != nil {
		return err
	}
	acquired := time.Now()
	if err := release(ctx); err != nil {
		return err
	}
	released := time.Now()
	r.add("network", c, 0, values{
		"acquire_rt": roundTrips(acquired.Sub(began)), "release_rt": roundTrips(released.Sub(acquired)),
	})
	if release, err = client.Acquire(ctx, name); err != nil {
		return err
	}
	type outcome struct {
		release lock.Release
		at      time.Time
		err     error
	}
	got := make(chan outcome, 1)
	go func() {
		release, err := next.Acquire(ctx, name)
		got <- outcome{release, time.Now(), err}
	}()
	if err := pause(ctx, 20*Delay); err != nil { // it waits by then
		return err
	}
	began = time.Now()
	if err := release(ctx); err != nil {
		return err
	}
	o := <-got
	if o.err != nil {
		return o.err
	}
	r.add("network", c, 0, values{"handover_rt": roundTrips(o.at.Sub(began))})
	return o.release(ctx)
}
