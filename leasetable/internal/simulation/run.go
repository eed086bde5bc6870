package simulation

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
)

// New returns the simulation of Lockers that opener opens.
func New(t *testing.T, opener Opener) seeds.Simulation[*Plan] {
	t.Helper()
	return seeds.Simulation[*Plan]{
		Draw:    NewPlan,
		Run:     func(plan *Plan, traced bool) seeds.Result { return Run(t, plan, opener, traced) },
		Size:    (*Plan).size,
		Shorten: func(s *seeds.Shrinker[*Plan]) { shrinker{s}.shorten() },
	}
}

// Run runs the history of a plan.
func Run(t *testing.T, plan *Plan, opener Opener, traced bool) (r seeds.Result) {
	t.Helper()
	var w *world
	defer func() {
		if w == nil {
			return
		}
		if trouble := recover(); trouble != nil { // a goroutine does not end
			w.fail("goroutines", "%v", trouble)
		}
		w.bag.Lock()
		defer w.bag.Unlock()
		r = seeds.Result{Broken: w.broken, Ops: int(w.ops.Load()), Schedule: w.schedule.Lines(), Hit: w.hit}
	}()
	synctest.Test(t, func(*testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		w = newWorld(ctx, plan, opener, traced)
		w.run()
		cancel()
		w.running.Wait()
	})
	return r
}

const (
	patience = 10 * time.Minute // for users whose names are free in the end
	settling = 15 * time.Second // more than for how long a claim waits for an answer, with the first release of its orphan
)

// run runs the users and the events, and checks what they leave.
func (w *world) run() {
	var events, users sync.WaitGroup
	for _, e := range w.plan.Events {
		events.Go(func() { w.happen(e) })
	}
	for _, u := range w.plan.Users {
		users.Go(func() { u.run(w.processes[u.process]) })
	}
	done := make(chan struct{})
	go func() {
		users.Wait()
		close(done)
	}()
	looking, stop := context.WithCancel(w.ctx)
	defer stop()
	w.running.Go(func() { w.look(looking) })
	select {
	case <-done:
	case <-time.After(w.plan.faultTime()):
	}
	events.Wait()
	w.calm.Store(true)
	select {
	case <-done:
	case <-time.After(patience):
		w.fail("waiting", "a user waits for ever")
	}
	w.settle()
}

// look compares what users believe with what the server has, again and again.
func (w *world) look(ctx context.Context) {
	for seeds.Sleep(ctx, w.plan.TTL/4) {
		for _, h := range w.every() {
			w.check(h, w.server)
		}
	}
}

// faultTime is for how long calls have faults.
func (p *Plan) faultTime() time.Duration { return 20 * p.TTL }

// settle checks that nothing is left when all users are done and nothing goes wrong any more.
func (w *world) settle() {
	w.mu.Lock()
	rest := w.longest + settling
	w.mu.Unlock()
	giveUp := w.keepLeases()
	seeds.Sleep(w.ctx, rest)
	plain := w.server.Store()
	for _, name := range names {
		state, err := plain.Read(w.ctx, name)
		if err != nil || state.Taken() {
			w.fail("I15, I17", "%s is still held, with token %d, by %s and %d permits: %v", name, state.Token, state.Owner, len(state.Together()), err)
		}
	}
	giveUp()
	if w.server.Busy() {
		w.fail("row locks", "somebody keeps a row locked")
	}
	var all sync.WaitGroup
	for _, p := range w.processes {
		all.Go(func() { w.mustBeUsable(p) })
	}
	all.Wait()
	seeds.Sleep(w.ctx, w.plan.TTL+time.Second)
	if rows, live := w.server.Leases(); live > 0 {
		w.fail("I15", "after Close %d of %d leases live", live, rows)
	}
	dead, err := plain.Expired(w.ctx, 0, 1000)
	for _, lease := range dead {
		if _, expireErr := plain.Expire(w.ctx, lease.LeaseID); expireErr != nil {
			err = expireErr
		}
	}
	if err != nil {
		w.fail("I15", "%v", err)
	}
	if rows, _ := w.server.Leases(); rows > 0 {
		w.fail("I15", "%d leases are left after the purge", rows)
	}
}

// keepLeases has every Locker hold a lock, so that its lease lives on: what a lease holds for nobody shows. One history in
// four does so, since it costs many renewals.
func (w *world) keepLeases() (giveUp func()) {
	var locks []*leasetable.Lease
	if w.plan.Seed%4 != 0 {
		return func() {}
	}
	for _, p := range w.processes {
		ctx, cancel := context.WithTimeout(w.ctx, patience)
		defer cancel()
		if lock, err := p.current().Acquire(ctx, fmt.Sprint("kept", p.number)); err == nil {
			locks = append(locks, lock)
		} else if !p.IsKilled() {
			w.fail("waiting", "process %d cannot acquire a new name: %v", p.number, err)
		}
	}
	return func() {
		for _, lock := range locks {
			_ = lock.Release(w.ctx) // it may have been lost when the clock was set ahead
		}
	}
}

// mustBeUsable checks that a Locker has kept no place in a queue, and closes it.
func (w *world) mustBeUsable(p *process) {
	l := p.current()
	if !p.IsKilled() {
		for _, name := range names {
			ctx, cancel := context.WithTimeout(w.ctx, patience)
			lock, err := l.Acquire(ctx, name)
			cancel()
			if err == nil {
				err = lock.Release(w.ctx)
			}
			if err != nil {
				w.fail("waiting", "process %d cannot acquire and release %s, which is free: %v", p.number, name, err)
			}
		}
	}
	if err := l.Close(); err != nil && !p.IsKilled() {
		w.fail("I15", "Close: %v", err)
	}
}
