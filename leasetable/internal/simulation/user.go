package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
)

const (
	limitOfPermits = 2
	actTime        = 5 * time.Second // the deadline of what a holder does with its lock
)

// run does what a user does, one op after the other.
func (u user) run(p *process) {
	for _, o := range u.ops {
		if !seeds.Sleep(p.Alive, o.pause) || !p.Pause() {
			return
		}
		u.do(p, o)
	}
}

func (u user) do(p *process, o op) {
	switch o.kind {
	case reopen:
		u.reopen(p)
	case elect:
		u.campaign(p, o)
	default:
		for _, h := range u.acquire(p, o) {
			u.use(p, o, h)
		}
	}
}

// reopen closes the Locker of the process, and opens another one.
func (u user) reopen(p *process) {
	p.ops.Add(1)
	p.mu.Lock()
	old := p.locker
	p.locker = p.open(p)
	p.mu.Unlock()
	p.log(p, func() string { return "closes its Locker" })
	if err := old.Close(); err != nil {
		p.fail("I15", "Close: %v", err)
	}
	p.log(p, func() string { return "has closed its Locker" })
}

// options are those of an acquisition.
func (o op) options() (opts []sqllock.Option) {
	switch o.how {
	case share:
		opts = append(opts, leasetable.WithShared())
	case permit:
		opts = append(opts, leasetable.WithLimit(limitOfPermits))
	}
	if o.minHold > 0 {
		opts = append(opts, leasetable.WithHoldAtLeast(o.minHold))
	}
	return opts
}

// acquire returns the locks that the user got.
func (u user) acquire(p *process, o op) (got []*held) {
	ctx, cancel := p.Alive, func() {}
	if o.wait > 0 {
		ctx, cancel = context.WithTimeout(p.Alive, o.wait)
	}
	defer cancel()
	l := p.current()
	began, which := time.Now(), []string{o.name}
	if o.kind == acquireAll {
		which = names[:2]
	}
	floors := make(map[string]int64)
	for _, name := range which {
		floors[name] = p.highest(name)
	}
	p.ops.Add(1)
	p.log(p, func() string {
		return fmt.Sprintf("%s %s%s within %v …", opNames[o.kind], holdNames[o.how], o.name, o.wait)
	})
	var leases []*leasetable.Lease
	var one *leasetable.Lease
	var err error
	switch o.kind {
	case try:
		one, err = l.TryAcquire(ctx, o.name, o.options()...)
	case adopt:
		text := p.takeTicket(o.name)
		if text == "" {
			return nil
		}
		one, err = l.Adopt(ctx, text)
	case acquireAll:
		leases, err = l.TryAcquireAll(ctx, which)
	default:
		one, err = l.Acquire(ctx, o.name, o.options()...)
	}
	if !p.Pause() {
		return nil
	}
	p.log(p, func() string { return fmt.Sprintf("%s %s%s: %v", opNames[o.kind], holdNames[o.how], o.name, said(err)) })
	if err != nil {
		return nil
	}
	if one != nil {
		leases = append(leases, one)
	}
	for _, le := range leases {
		h := &held{Lease: le, process: p, name: le.Name(), how: o.how, began: began}
		if o.kind == acquireAll || o.kind == adopt {
			h.how = whole
		}
		u.has(p, h, floors[h.name])
		got = append(got, h)
	}
	return got
}

// said is an error, or what it means that there is none.
func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// has notes that the user has a lock.
func (u user) has(p *process, h *held, floor int64) {
	p.log(p, func() string { return fmt.Sprintf("has %v", h) })
	p.granted(h, floor)
	context.AfterFunc(h.Context(), func() {
		p.log(p, func() string { return fmt.Sprintf("%v ended: %v", h, context.Cause(h.Context())) })
		p.ended(h)
	})
	p.promised(h, h.Remaining())
}

// use does what the user does with a lock, and gives it up.
func (u user) use(p *process, o op, h *held) {
	seeds.Sleep(p.Alive, o.hold)
	for _, a := range o.acts {
		if !p.Pause() {
			return
		}
		u.act(p, a, h, o)
		seeds.Sleep(p.Alive, o.hold)
	}
	if !p.Pause() {
		return
	}
	p.ops.Add(1)
	at := time.Now()
	wasLive := p.giveUp(h)
	if o.export > 0 && h.how == whole {
		ctx, cancel := context.WithTimeout(p.Alive, actTime)
		defer cancel()
		text, err := h.Export(ctx, o.export)
		p.log(p, func() string { return fmt.Sprintf("exports %v: %v", h, said(err)) })
		if err == nil {
			p.leaveTicket(h.name, text)
		} else if h.Context().Err() == nil {
			u.release(p, h, time.Now(), p.giveUp(h))
		}
		return
	}
	u.release(p, h, at, wasLive)
}

func (u user) release(p *process, h *held, at time.Time, wasLive bool) {
	p.log(p, func() string { return fmt.Sprintf("releases %v …", h) })
	err := h.Release(p.Alive)
	if !p.Pause() {
		return
	}
	p.log(p, func() string { return fmt.Sprintf("released %v: %v", h, said(err)) })
	p.released(h, wasLive, at, err)
}

// act does one thing with a lock.
func (u user) act(p *process, a act, h *held, o op) {
	ctx, cancel := context.WithTimeout(p.Alive, actTime)
	defer cancel()
	p.ops.Add(1)
	var err error
	switch a {
	case guard:
		err = u.guard(ctx, p, h, o)
	case guardOn:
		p.running.Go(func() { u.act(p, guard, h, o) })
	case extend:
		d := o.hold + p.plan.TTL
		if err = h.Extend(ctx, d); err == nil {
			if left := h.Remaining(); left < d && h.Context().Err() == nil {
				p.fail("I3", "%v was extended by %v, and %v are left", h, d, left)
			}
		}
	case renew:
		err = h.Renew(ctx)
	case verify:
		before, _ := p.server.Lasts(h.name, h.Token())
		err = h.Verify(ctx)
		if after, _ := p.server.Lasts(h.name, h.Token()); err == nil && before <= 0 && after <= 0 {
			p.fail("I20", "%v was verified, and its lease had ended", h)
		}
	case attach:
		err = h.SetMetadata(ctx, "note")
	}
	if !p.Pause() {
		return
	}
	p.log(p, func() string { return fmt.Sprintf("%s, %v: %v", actNames[a], h, said(err)) })
	p.promised(h, h.Remaining())
}

// guard writes in a transaction that the lock guards.
func (u user) guard(ctx context.Context, p *process, h *held, o op) error {
	tx := p.server.Begin()
	defer func() { _ = tx.Rollback(ctx) }() // after the commit it does nothing
	if err := h.Guard(ctx, leasetable.PgxTx(tx)); err != nil {
		return err
	}
	seeds.Sleep(ctx, o.hold/4)
	if !p.Pause() {
		return errKilled
	}
	if err := tx.Write(ctx, h.name, h.Token()); err != nil {
		return err
	}
	seeds.Sleep(ctx, o.hold/4)
	if !p.Pause() {
		return errKilled
	}
	return tx.Commit()
}

// campaign leads once, or again if the lead was lost.
func (u user) campaign(p *process, o op) {
	l := p.current()
	e, err := leasetable.NewElector(l, o.name)
	if err != nil {
		p.fail("elector", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(p.Alive, o.wait+p.plan.TTL)
	defer cancel()
	p.ops.Add(1)
	began, floor := time.Now(), p.highest(o.name)
	err = e.Run(ctx, func(ctx context.Context, le *leasetable.Lease) error {
		h := &held{Lease: le, process: p, name: le.Name(), began: began}
		if !p.Pause() {
			return errKilled
		}
		u.has(p, h, floor)
		seeds.Sleep(ctx, o.hold)
		for _, a := range o.acts {
			if ctx.Err() == nil && p.Pause() {
				u.act(p, a, h, o)
			}
		}
		began, floor = time.Now(), p.highest(o.name)
		return nil
	})
	p.log(p, func() string { return fmt.Sprintf("campaigned for %s: %v", o.name, said(err)) })
	if err != nil && errors.Is(err, sqllock.ErrUnsupported) {
		p.fail("elector", "%v", err)
	}
}
