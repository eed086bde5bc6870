package simulation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Opener opens a Locker whose leases are in a store.
type Opener func(s store.Store, opts ...leasetable.Option) (*leasetable.Locker, error)

// world is one history.
type world struct {
	plan      *Plan
	opener    Opener
	server    *memory.Server
	processes []*process
	ctx       context.Context //nolint:containedctx // ends with the history
	schedule  *seeds.Schedule
	*monitor

	epoch     atomic.Int64 // counts restarts of the server
	down      atomic.Bool  // the server is not there
	calm      atomic.Bool  // no more faults
	ops       atomic.Int64 // calls of users
	callCount atomic.Int64 // calls of stores
	running   sync.WaitGroup

	bag     sync.Mutex
	tickets map[string][]string // guarded by bag
	leases  map[string]string   // guarded by bag: names of leases for people
	opened  map[int]int         // guarded by bag: how many leases a process has opened
	hit     map[string]bool     // guarded by bag: the calls that had faults
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

// met notes that a call had its fault.
func (w *world) met(id callID) {
	w.bag.Lock()
	defer w.bag.Unlock()
	w.hit[id.String()] = true
}

// leaseName returns the name of a lease for people: its process, and a number.
func (p *process) leaseName(id string) string {
	p.bag.Lock()
	defer p.bag.Unlock()
	name, known := p.leases[id]
	if !known {
		p.opened[p.number]++
		name = fmt.Sprintf("lease %d.%d", p.number, p.opened[p.number])
		p.leases[id] = name
	}
	return name
}

func (w *world) leaveTicket(name, text string) {
	w.bag.Lock()
	defer w.bag.Unlock()
	w.tickets[name] = append(w.tickets[name], text)
}

// takeTicket returns the latest ticket of a name, or "". It may be taken again.
func (w *world) takeTicket(name string) string {
	w.bag.Lock()
	defer w.bag.Unlock()
	if all := w.tickets[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

// open opens a Locker for a process.
func (w *world) open(p *process) *leasetable.Locker {
	l, err := w.opener(p.faulty(), leasetable.WithTTL(w.plan.TTL), leasetable.WithOwner(fmt.Sprintf("process %d", p.number)))
	if err != nil {
		panic(err) // the options are right
	}
	return l
}

func newWorld(ctx context.Context, plan *Plan, opener Opener, traced bool) *world {
	w := &world{
		ctx:  ctx,
		plan: plan, opener: opener, server: memory.NewServer(plan.Kind), schedule: seeds.NewSchedule(traced),
		tickets: make(map[string][]string), leases: make(map[string]string), opened: make(map[int]int), hit: make(map[string]bool),
	}
	w.monitor = &monitor{
		began: time.Now(), freed: make(chan struct{}), locks: make(map[string][]*held), told: make(map[string]int64), rises: make(map[string][]rise),
		excuses: excuses{prompt: plan.prompt(), forcedAt: make(map[string]time.Time), longest: plan.TTL},
	}
	w.server.Watch(w.changed)
	for i := range plan.Processes {
		p := &process{world: w, Life: seeds.NewLife(ctx), number: i + 1, store: w.server.Store(), calls: make(map[callID]int)}
		p.locker = w.open(p)
		w.processes = append(w.processes, p)
	}
	return w
}
