package scenario

import (
	"context"
	"errors"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/bench/internal/fleet"
	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/internal/netfault"
)

// faults is a holder that dies, is stopped, or is cut off from the network, while another process waits: how long until
// that one has the lock. The kinds take part at the same time, since most of the time nothing happens.
func faults(ctx context.Context, r *Run) error {
	for _, fault := range []struct {
		name   string
		viaCut bool
		inject func(p *pairing) error
	}{
		{"kill", false, func(p *pairing) error { return p.holder.Signal(syscall.SIGKILL) }},
		{"stop", false, func(p *pairing) error { return p.holder.Signal(syscall.SIGSTOP) }},
		{"cut", true, func(p *pairing) error { p.network.Cut(); return nil }},
	} {
		if err := r.fault(ctx, "fault/"+fault.name, fault.viaCut, fault.inject); err != nil {
			return err
		}
	}
	return nil
}

// pairing is a holder and a waiter of one name.
type pairing struct {
	contender
	holder, waiter *fleet.Process
	network        *netfault.Network // between the holder and the server, or nil
	endNetwork     func()
}

func (p *pairing) end() {
	p.holder.End()
	p.waiter.End()
	if p.network != nil {
		p.endNetwork()
	}
}

func (r *Run) fault(ctx context.Context, scenario string, cut bool, inject func(*pairing) error) error {
	var all []*pairing
	defer func() {
		for _, p := range all {
			p.end()
		}
	}()
	for range r.Plan.FaultRounds {
		for _, c := range r.contenders(waits) {
			p, err := r.pairing(ctx, c, cut)
			if err != nil {
				r.failed(scenario, c, 0, err)
				continue
			}
			all = append(all, p)
		}
	}
	if err := pause(ctx, time.Second); err != nil { // all of them wait
		return err
	}
	return in(len(all), func(i int) error {
		p := all[i]
		// One after the other, and at different times since the last renewal.
		if err := pause(ctx, lock.TTL/3*time.Duration(i)/time.Duration(len(all))); err != nil {
			return err
		}
		if len(p.waiter.Taken) > 0 {
			r.failed(scenario, p.contender, 0, errors.New("the holder lost the lock before the fault"))
			return nil
		}
		began := time.Now()
		if err := inject(p); err != nil {
			return err
		}
		select {
		case at := <-p.waiter.Taken:
			r.add(scenario, p.contender, 0, values{"next_s": at.Sub(began).Seconds()})
		case <-time.After(r.Plan.FaultLimit):
			r.add(scenario, p.contender, 0, values{"not_by_s": r.Plan.FaultLimit.Seconds()})
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return nil
	})
}

// pairing starts a holder, which has the lock, and a waiter.
func (r *Run) pairing(ctx context.Context, c contender, cut bool) (_ *pairing, err error) {
	var two fleet.Fleet
	if err := two.Grow(2); err != nil {
		two.End()
		return nil, err
	}
	p := &pairing{contender: c, holder: two[0], waiter: two[1]}
	defer func() {
		if err != nil {
			p.end()
		}
	}()
	address := c.server.Address
	if cut {
		if p.network, p.endNetwork, err = c.server.Network(); err != nil {
			return nil, err
		}
		address = c.server.At(p.network.Address())
	}
	name := r.name("fault")
	if err := errors.Join(p.holder.Open(c.ID(), address, 1), p.holder.Take(name)); err != nil {
		return nil, err
	}
	select {
	case <-p.holder.Taken:
	case <-time.After(30 * time.Second):
		return nil, errors.New("the holder does not get the lock")
	}
	return p, errors.Join(p.waiter.Open(c.ID(), c.server.Address, 1), p.waiter.Take(name))
}
