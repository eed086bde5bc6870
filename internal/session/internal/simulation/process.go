package simulation

import (
	"context"
	"fmt"
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
	number int
	ctx    context.Context //nolint:containedctx // ends with the process
	end    func()
	killed chan struct{} // closed when the process is killed

	mu      sync.Mutex
	locker  *session.Locker[string] // guarded by mu
	resumed chan struct{}           // guarded by mu: nil unless the process is stopped; closed when it goes on
	cut     time.Time               // guarded by mu: nothing arrives until then
	many    int                     // guarded by mu: how often in a row it had too many connections
	opened  int                     // guarded by mu: how many connections there were
	conns   map[*conn]struct{}      // guarded by mu: connections that its Lockers have not closed
	asked   int                     // guarded by mu: how often a goroutine could have stalled
}

// open opens a Locker.
func (p *process) open() *session.Locker[string] {
	timing, err := session.NewTiming(p.plan.TTL, time.Second, p.plan.Kind.heartbeat())
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

// cutOff cuts the process off from the server for some time.
func (p *process) cutOff(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = time.Now().Add(d)
}

// current is the Locker of the process, which can be closed and opened again.
func (p *process) current() *session.Locker[string] {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.locker
}

// pause waits while the process is stopped. It reports false if the process was killed.
func (p *process) pause() bool {
	for {
		p.mu.Lock()
		resumed := p.resumed
		p.mu.Unlock()
		if resumed == nil {
			return !p.isKilled()
		}
		select {
		case <-resumed:
		case <-p.killed:
		}
		if p.isKilled() {
			return false
		}
	}
}

func (p *process) isKilled() bool {
	select {
	case <-p.killed:
		return true
	default:
		return false
	}
}

// stop stops the process for some time.
func (p *process) stop(d time.Duration) {
	p.mu.Lock()
	if p.resumed != nil || p.isKilled() {
		p.mu.Unlock()
		return
	}
	resumed := make(chan struct{})
	p.resumed = resumed
	p.mu.Unlock()
	p.sleep(p.world.ctx, d)
	p.mu.Lock()
	p.resumed = nil
	p.mu.Unlock()
	close(resumed)
}

// kill ends the process at once.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.isKilled() {
		close(p.killed)
		p.end()
	}
}

// connections returns the connections that are open.
func (p *process) connections() (all []*conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		all = append(all, c)
	}
	return all
}

// unreachable returns for how long the process is cut off from the server.
func (p *process) unreachable() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Until(p.cut)
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
	p.sleep(p.world.ctx, long)
}
