package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	events "github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
)

// process is a simulated process: a Locker, and the way from it to the server.
type process struct {
	*world
	*seeds.Life
	number int

	mu     sync.Mutex
	locker *session.Locker[string] // guarded by mu
	many   int                     // guarded by mu: how often in a row it had too many connections
	opened int                     // guarded by mu: how many connections there were
	conns  []*conn                 // guarded by mu: connections that its Lockers have not closed
	asked  int                     // guarded by mu: how often a goroutine could have stalled
}

// open opens a Locker.
func (p *process) open() *session.Locker[string] {
	timing, err := session.NewTiming(p.plan.TTL, time.Second, p.plan.Kind.heartbeat())
	timing.Waiting = min(waitTTL, p.plan.TTL)
	if err != nil {
		panic(err) // it is in range
	}
	var l *session.Locker[string]
	l = session.New(session.Config[string]{
		Open:   func(ctx context.Context) (session.Conn[string], error) { return p.connect(ctx, l) },
		Timing: timing,
		Limits: session.Limits{Sessions: p.plan.Sessions, Locks: p.plan.Locks},
		Owner:  fmt.Sprintf("process %d", p.number),
		Events: observe.Sink{
			Hook:   func(context.Context, sqllock.Event) { p.mayStall(nil) },
			Locker: func() events.Locker { return events.Locker{} },
		},
	})
	return l
}

// current is the Locker of the process, which can be closed and opened again.
func (p *process) current() *session.Locker[string] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.locker
}

// connections returns the connections that are open.
func (p *process) connections() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.conns)
}

// mayStall has the goroutine stall, if the seed says so, unless mustNot says true.
func (p *process) mayStall(mustNot func() bool) {
	if p.plan.Stalls == 0 || p.calm.Load() {
		return
	}
	p.mu.Lock()
	p.asked++
	n := p.asked
	p.mu.Unlock()
	d := seeds.NewDice(seeds.Mix(p.plan.Seed, uint64(p.number), uint64(n), 3))
	if !d.Chance(p.plan.Stalls) || mustNot != nil && mustNot() {
		return
	}
	id := fmt.Sprintf("process %d, stall no. %d", p.number, n)
	if p.plan.Kept != nil && !p.plan.Kept[id] {
		return
	}
	p.met(id)
	p.trouble(p.number)
	long := d.Time(0, seeds.Pick(d, time.Millisecond, 30*time.Millisecond, p.plan.TTL))
	p.log(p, func() string { return fmt.Sprintf("FAULT stall no. %d of a goroutine, for %v", n, long) })
	seeds.Sleep(p.ctx, long)
}
