package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// process is a simulated process: a Locker, and the way from it to the server.
type process struct {
	*world
	*seeds.Life
	number int
	store  *memory.Store

	mu     sync.Mutex
	locker *leasetable.Locker // guarded by mu
	calls  map[callID]int     // guarded by mu: how many there were of each kind and subject
}

// current is the Locker of the process, which can be closed and opened again.
func (p *process) current() *leasetable.Locker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.locker
}

// turn returns what becomes of the next call.
func (p *process) turn(step, about string) turn {
	id := callID{process: p.number, step: step, about: about}
	p.mu.Lock()
	p.calls[id]++
	n := p.calls[id]
	p.mu.Unlock()
	id.n = n
	if p.callCount.Add(1) == mostCalls {
		p.fail("livelock", "there were %d calls of stores", mostCalls)
		for _, other := range p.processes {
			go other.Kill()
		}
	}
	t := p.plan.turnOf(id)
	if p.calm.Load() {
		t.fault = none
	}
	if t.fault != none {
		p.met(id)
	}
	return t
}

// call makes one call of the store, with its fault. f is called at the moment when the server carries it out.
func call[T any](ctx context.Context, p *process, step, about string, f func(context.Context) (T, error)) (T, error) {
	var nothing T
	if !p.Pause() {
		return nothing, errKilled
	}
	t := p.turn(step, about)
	epoch := p.epoch.Load()
	v, err := attempt(ctx, p, t, epoch, f)
	if !p.Pause() {
		return nothing, errKilled
	}
	if err == nil && p.epoch.Load() != epoch { // the server restarted while the answer was under way
		v, err = nothing, errBroken
	}
	if err != nil && !dberr.OutcomeKnown(err) && (step == "renew" || step == "end lease") {
		p.store.Reconnect()
	}
	if p.schedule.Traced {
		p.logAnswer(t, p.show(v), err)
	}
	return v, err
}

// logAnswer adds the answer to a call to the schedule.
func (p *process) logAnswer(t turn, answer string, err error) {
	if err != nil {
		answer = err.Error()
	}
	text := fmt.Sprintf("%s %s → %s", t.id.step, t.id.about, answer)
	if t.fault != none {
		text += fmt.Sprintf("   FAULT no. %d: %s (%v)", t.id.n, t.fault, t.delay)
	}
	p.log(p, func() string { return text })
}

// attempt is a call, without the process.
func attempt[T any](ctx context.Context, p *process, t turn, epoch int64, f func(context.Context) (T, error)) (v T, err error) {
	switch t.fault {
	case lost:
		seeds.Sleep(ctx, t.there)
		return v, errBroken
	case refused:
		seeds.Sleep(ctx, t.there)
		return v, errRefused
	case silent:
		return v, hang(ctx, p)
	case detached, slow:
		return detach(ctx, p, t, epoch, f)
	}
	if !seeds.Sleep(ctx, t.there) {
		return v, ended(ctx)
	}
	if p.Unreachable() > 0 {
		return v, hang(ctx, p)
	}
	v, err = execute(ctx, p, t, epoch, f)
	if err != nil {
		return v, err
	}
	switch t.fault {
	case unanswered:
		return v, errBroken
	case mute:
		return v, hang(ctx, p)
	case late:
		t.back += t.delay
	}
	if !seeds.Sleep(ctx, t.back) {
		return v, ended(ctx)
	}
	if p.Unreachable() > 0 {
		return v, hang(ctx, p)
	}
	return v, nil
}

// execute has the server carry a statement out.
func execute[T any](ctx context.Context, p *process, t turn, epoch int64, f func(context.Context) (T, error)) (v T, err error) {
	switch {
	case p.down.Load():
		return v, errDown
	case p.epoch.Load() != epoch:
		return v, errBroken
	case !p.server.Busy():
		return f(ctx)
	}
	// It may wait for a row, and outlive its caller.
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	p.running.Go(func() {
		waiting, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		stop := context.AfterFunc(ctx, func() { seeds.Sleep(waiting, t.linger); cancel() })
		defer stop()
		v, err := f(waiting)
		answers <- answer{v, err}
	})
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
		return v, ended(ctx)
	}
}

// detach has a statement carried out later, and its caller wait for it, unless the connection breaks.
func detach[T any](ctx context.Context, p *process, t turn, epoch int64, f func(context.Context) (T, error)) (v T, err error) {
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	p.running.Go(func() {
		seeds.Sleep(p.ctx, t.there+t.delay)
		if p.down.Load() || p.epoch.Load() != epoch {
			answers <- answer{err: errBroken}
			return
		}
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.linger)
		defer cancel()
		v, err := f(within)
		p.log(p, func() string {
			return fmt.Sprintf("%s %s was carried out: %s, %v", t.id.step, t.id.about, p.show(v), err)
		})
		answers <- answer{v, err}
	})
	if t.fault == detached {
		seeds.Sleep(ctx, t.there)
		return v, errBroken
	}
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
		return v, ended(ctx)
	}
}

// hang waits for the end of a call that gets no answer.
func hang(ctx context.Context, p *process) error {
	select {
	case <-ctx.Done():
		return ended(ctx)
	case <-p.Killed:
		return errKilled
	case <-time.After(hangTime):
		return errBroken
	}
}

// hangTime is after what time a connection that says nothing breaks.
const hangTime = 20 * time.Second

func ended(ctx context.Context) error { return dberr.Classify(ctx.Err()) }

// mostCalls is more than a history has, unless it goes round in circles.
const mostCalls = 100_000
