package simulation

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
)

// New returns the simulation.
func New(t *testing.T) seeds.Simulation[*Plan] {
	t.Helper()
	return seeds.Simulation[*Plan]{
		Draw:    NewPlan,
		Run:     func(plan *Plan, traced bool) seeds.Result { return Run(t, plan, traced) },
		Size:    (*Plan).size,
		Shorten: func(s *seeds.Shrinker[*Plan]) { shrinker{s}.shorten() },
	}
}

// Run runs the history of a plan.
func Run(t *testing.T, plan *Plan, traced bool) (r seeds.Result) {
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
		w = newWorld(ctx, plan, traced)
		w.run()
		cancel()
		w.running.Wait()
	})
	return r
}

// patience is for how long users may need whose names are free in the end.
const patience = 5 * time.Minute

// run runs the users and the events, and checks what they leave.
func (w *world) run() {
	var events, users sync.WaitGroup
	for _, e := range w.plan.Events {
		events.Go(func() { w.happen(e) })
	}
	for _, u := range w.plan.Users {
		users.Go(func() { u.run(w) })
	}
	done := make(chan struct{})
	go func() {
		users.Wait()
		close(done)
	}()
	looking, stop := context.WithCancel(w.ctx)
	defer stop()
	w.running.Go(func() { watcher{w}.look(looking) })
	select {
	case <-done:
	case <-time.After(20 * w.plan.TTL): // for so long, statements have faults
	}
	events.Wait()
	w.calm.Store(true)
	select {
	case <-done:
	case <-time.After(patience):
		w.fail("waiting", "a user waits for ever")
		for _, p := range w.every(true) {
			p.Kill()
		}
		<-done
	}
	stop()
	w.settle()
}

// settle checks that nothing is left when all users are done and nothing goes wrong any more.
func (w *world) settle() {
	rest := 3 * time.Second // for the slices of waits
	if !w.plan.prompt() {   // a client may be slow to close a connection, and the server slow to hear of it
		rest += 5 * w.plan.TTL
	}
	seeds.Sleep(w.ctx, rest)
	w.server.Locked(func() {
		for _, k := range w.server.Held() {
			w.fail("I43, I44", "session no. %d of process %d has %s, or waits for it (%t)", k.Session.ID, k.Session.Client, k.Key, k.Waits)
		}
	})
	var all sync.WaitGroup
	for _, p := range w.every(false) {
		all.Go(func() { w.mustBeUsable(p) })
	}
	all.Wait()
	seeds.Sleep(w.ctx, time.Second)
	if n := w.server.Sessions(); n > 0 {
		w.fail("leak", "%d sessions live after Close", n)
	}
	for _, p := range w.every(false) {
		if n := len(p.connections()); n > 0 && !p.IsKilled() {
			w.fail("leak", "process %d has %d connections open after Close", p.number, n)
		}
	}
}

// mustBeUsable checks that a Locker can acquire each name, and closes it.
func (w *world) mustBeUsable(p *process) {
	l := p.current()
	if !p.IsKilled() {
		for _, name := range names {
			ctx, cancel := context.WithTimeout(w.ctx, patience)
			lock, err := l.Acquire(ctx, session.Want[string]{Name: name, Key: name})
			cancel()
			if err == nil {
				err = lock.Release(w.ctx)
			}
			if err != nil {
				w.fail("waiting", "process %d cannot acquire and release %s, which is free: %v", p.number, name, err)
			}
		}
	}
	p.closeLocker(l)
}
