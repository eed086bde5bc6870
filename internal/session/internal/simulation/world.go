package simulation

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session/internal/memory"
)

// world is one history.
type world struct {
	plan     *Plan
	ctx      context.Context //nolint:containedctx // ends with the history
	schedule *seeds.Schedule
	*monitor

	calm      atomic.Bool  // no more faults
	ops       atomic.Int64 // calls of users
	callCount atomic.Int64 // statements
	running   sync.WaitGroup

	bag       sync.Mutex
	processes []*process                // guarded by bag: all that ever were
	now       []*process                // guarded by bag: those of the plan, or the ones that were started instead
	away      map[eventKind]int         // guarded by bag: why the server opens no connection
	hit       map[string]bool           // guarded by bag: the statements that had faults
	turns     map[callID]int            // guarded by bag: how many there were of each kind and subject
	conns     map[*memory.Session]*conn // guarded by bag
}

func newWorld(ctx context.Context, plan *Plan, traced bool) *world {
	w := &world{
		ctx: ctx, plan: plan, schedule: seeds.NewSchedule(traced),
		away: make(map[eventKind]int), hit: make(map[string]bool), turns: make(map[callID]int), conns: make(map[*memory.Session]*conn),
	}
	w.monitor = newMonitor(plan)
	w.server = memory.NewServer(w.changed) // of the monitor
	for range plan.Processes {
		w.now = append(w.now, w.start())
	}
	return w
}

// log adds a line to the schedule.
func (w *world) log(p *process, text func() string) {
	switch {
	case w.found.Load(): // what follows explains nothing
	case p == nil:
		w.schedule.Add(0, text)
	default:
		w.schedule.Add(p.number, text)
	}
}

// start starts a process.
func (w *world) start() *process {
	w.bag.Lock()
	defer w.bag.Unlock()
	p := &process{world: w, Life: seeds.NewLife(w.ctx), number: len(w.processes) + 1}
	p.locker = p.open()
	w.processes = append(w.processes, p)
	return p
}

// process returns the nth process of the plan, or the one that was started instead.
func (w *world) process(n int) *process {
	w.bag.Lock()
	defer w.bag.Unlock()
	return w.now[n]
}

// every returns all processes, or those that live.
func (w *world) every(living bool) (all []*process) {
	w.bag.Lock()
	defer w.bag.Unlock()
	for _, p := range w.processes {
		if !living || !p.IsKilled() {
			all = append(all, p)
		}
	}
	return all
}

// isGone reports whether a process was killed.
func (w *world) isGone(number int) bool {
	w.bag.Lock()
	defer w.bag.Unlock()
	return w.processes[number-1].IsKilled()
}

// turn returns what becomes of the next statement.
func (w *world) turn(p *process, step, about string) turn {
	id := callID{process: p.number, step: step, about: about}
	w.bag.Lock()
	w.turns[id]++
	n := w.turns[id]
	w.bag.Unlock()
	id.n = n
	if w.callCount.Add(1) == mostCalls {
		w.fail("livelock", "there were %d statements", mostCalls)
		for _, other := range w.every(true) {
			other.Kill()
		}
	}
	t := w.plan.turnOf(id)
	if w.calm.Load() || step == "close" {
		t.fault = none
	}
	if t.fault != none {
		w.met(id.String())
		w.trouble(p.number)
	}
	return t
}

// met notes that a statement had its fault.
func (w *world) met(id string) {
	w.bag.Lock()
	defer w.bag.Unlock()
	w.hit[id] = true
}

// mostCalls is more than a history has, unless it goes round in circles.
const mostCalls = 200_000

// setAway has the server open no connections, or open them again.
func (w *world) setAway(kind eventKind, change int) {
	w.bag.Lock()
	defer w.bag.Unlock()
	w.away[kind] += change
}

// isAway returns why the server opens no connection, or nil.
func (w *world) isAway() error {
	w.bag.Lock()
	defer w.bag.Unlock()
	switch {
	case w.away[restart] > 0:
		return errDown
	case w.away[standby] > 0:
		return errStandby
	case w.away[full] > 0:
		return errFull
	}
	return nil
}

// connOf returns the connection of a session.
func (w *world) connOf(s *memory.Session) *conn {
	w.bag.Lock()
	defer w.bag.Unlock()
	return w.conns[s]
}
