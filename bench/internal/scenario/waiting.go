package scenario

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/bench/internal/fleet"
	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/server"
)

// processes is how many processes the waiters of one server are in, if there are more.
const processes = 64

// many are so many waiters that one server at a time has enough to do.
const many = 256

// waiting is one holder that holds for long, and n clients that wait, in up to 64 processes: what that costs while nothing
// happens. The servers take part at the same time, unless there are many waiters.
func waiting(ctx context.Context, r *Run) error {
	for _, n := range r.Plan.Waiters {
		errs := make([]error, len(r.Servers))
		var all sync.WaitGroup
		for i, s := range r.Servers {
			all.Go(func() { errs[i] = r.waitOn(ctx, s, n) })
			if n >= many {
				all.Wait()
			}
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) waitOn(ctx context.Context, s *server.Server, n int) error {
	if n > many && (s.Engine == lock.MySQL || s.Engine == lock.Redis) {
		return nil // which grow as MariaDB does, and by their polls
	}
	for _, c := range r.contenders(func(k lock.Kind) bool { return k.Waits && k.Engine == s.Engine }) {
		if n > processes && s.Engine != lock.Redis && s.Engine != lock.Etcd && c.Role == lock.Peer {
			continue // it is clear by then how these grow
		}
		if err := r.waitOnce(ctx, c, n); err != nil {
			r.failed("waiting", c, n, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (r *Run) waitOnce(ctx context.Context, c contender, n int) error {
	others, err := c.server.OthersConnections()
	if err != nil {
		return err
	}
	var holder, waiters fleet.Fleet
	defer holder.End()
	defer waiters.End()
	size := min(n, processes)
	if err := errors.Join(holder.Grow(1), waiters.Grow(size)); err != nil {
		return err
	}
	name := r.name("waiting")
	if err := errors.Join(holder.Open(c.ID(), c.server.Address, 1, ""), holder.Take(name)); err != nil {
		return err
	}
	select {
	case <-holder[0].Taken:
	case <-time.After(30 * time.Second):
		return errors.New("the holder does not get the lock")
	}
	if err := errors.Join(waiters.Open(c.ID(), c.server.Address, n/size, ""), waiters.Take(name)); err != nil {
		return err
	}
	if err := pause(ctx, r.Plan.WaitingSettle+2*r.Plan.WaitingSettle*time.Duration(n)/1024); err != nil {
		return err
	}
	for range r.Plan.WaitingRounds {
		before, err := c.server.Statements(ctx)
		if err != nil {
			return err
		}
		cpu := c.server.CPU()
		began := time.Now()
		if err := pause(ctx, r.Plan.WaitingDuration); err != nil {
			return err
		}
		spent := c.server.CPU().Since(cpu)
		after, err := c.server.Statements(ctx)
		if err != nil {
			return err
		}
		seconds := time.Since(began).Seconds()
		connections, err := c.server.Connections()
		if err != nil {
			return err
		}
		v := values{"statements_s": float64(after-before) / seconds, "connections": float64(connections - others)}
		if cpu != nil {
			v["cpu_percent"] = 100 * spent.Seconds() / seconds
		}
		r.add("waiting", c, n, v)
	}
	for _, p := range waiters {
		if len(p.Taken) > 0 {
			return errors.New("the holder lost the lock, and a waiter got it")
		}
	}
	return nil
}
