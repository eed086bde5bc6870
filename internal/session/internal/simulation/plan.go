package simulation

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
)

// Plan is what a seed chooses.
type Plan struct {
	Seed      uint64
	Kind      kind
	TTL       time.Duration
	Sessions  int // the most connections of a Locker
	Locks     int // the most locks on one session
	Processes int
	Users     []user
	Events    []event
	Faults    []fault // the kinds of faults of statements
	Rate      int     // how many statements of a thousand have one
	Stalls    int     // how many times of a thousand a goroutine stalls where it asks its context, or calls a hook

	Kept map[string]bool // the statements that have their faults; nil: all
}

// kind is a kind of server, with its driver.
type kind struct {
	name    string
	gated   bool // PostgreSQL: waits in slices at a gate, shares, and answers that another goroutine can wait for
	watches bool // the client sees at once that the server has ended an idle connection
	blink   bool // it sees first that it may have
}

var (
	postgres = kind{name: "PostgreSQL", gated: true, watches: true}
	mysql    = kind{name: "MySQL", watches: true, blink: true}
	blind    = kind{name: "MySQL, connections that are not watched"}
)

// heartbeat is the longest interval of heartbeats.
func (k kind) heartbeat() time.Duration {
	if k.gated {
		return 5 * time.Second
	}
	return time.Second
}

// user is one goroutine of a process.
type user struct {
	process int
	ops     []op
}

// op is one use of a name.
type op struct {
	kind   opKind
	name   string
	shared bool
	pause  time.Duration // before
	wait   time.Duration // a deadline; 0: none
	cancel bool          // the context ends without telling its deadline
	within time.Duration // the longest wait of Acquire; 0: none
	hold   time.Duration
}

type opKind int

const (
	try opKind = iota
	acquire
	ask
	terminate
	reopen
	opKinds
)

var opNames = [opKinds]string{"try", "acquire", "ask for the holder of", "terminate the holder of", "close and open again"}

// event is something that happens to the world.
type event struct {
	kind    eventKind
	at      time.Duration
	process int
	name    string
	d       time.Duration
}

type eventKind int

const (
	stop eventKind = iota
	kill
	vanish
	cutOff
	halfOpen
	breakOff
	restart
	freeze
	full
	standby
	eventKinds
)

var eventNames = [eventKinds]string{
	"a process is stopped", "a process is killed", "a process vanishes with its machine", "a process is cut off", "the connection of a holder is cut off",
	"the connection of a holder breaks", "the server restarts", "the server stalls", "the server has no connection left", "the server is a standby",
}

var names = []string{"a", "b", "c"}

// NewPlan draws the plan of a seed.
func NewPlan(seed uint64) *Plan {
	d := seeds.NewDice(seeds.Mix(seed, 2))
	p := &Plan{
		Seed:     seed,
		Kind:     seeds.Pick(d, postgres, postgres, mysql, blind),
		TTL:      seeds.Pick(d, 3*time.Second, 6*time.Second, 15*time.Second),
		Sessions: seeds.Pick(d, 2, 4, 6),
		Locks:    seeds.Pick(d, 1, 2, 100),
		Rate:     seeds.Pick(d, 0, 10, 40, 120),
		Stalls:   seeds.Pick(d, 0, 0, 10, 100),
	}
	for f := none + 1; f < faults; f++ {
		if d.Chance(350) {
			p.Faults = append(p.Faults, f)
		}
	}
	p.Processes = 2 + d.N(2)
	p.drawUsers(d)
	p.drawEvents(d)
	return p
}

func (p *Plan) drawUsers(d *seeds.Dice) {
	busy := seeds.Pick(d, time.Millisecond, 10*time.Millisecond, 100*time.Millisecond)
	spread := 1 + d.N(len(names))
	kinds := []opKind{try, acquire, acquire}
	for _, more := range []opKind{try, acquire, ask, terminate, reopen} {
		if d.Chance(300) {
			kinds = append(kinds, more)
		}
	}
	shares := seeds.Pick(d, 0, 0, 300, 700)
	long := seeds.Pick(d, 20, 20, 200)
	users, ops := 4, 8 // for each of two processes
	if p.Processes == 3 {
		users, ops = 3, 6
	}
	for i := range p.Processes * users {
		u := user{process: i % p.Processes}
		for range ops + d.N(3) {
			o := op{kind: seeds.Pick(d, kinds...), name: names[d.N(spread)], pause: d.Time(0, busy), hold: d.Time(0, seeds.Pick(d, 0, busy, busy))}
			o.shared = p.Kind.gated && d.Chance(shares)
			if o.kind == reopen && d.Chance(800) {
				o.kind = try
			}
			o.wait = seeds.Pick(d, 0, d.Time(0, 5*busy), d.Time(0, 2*p.TTL))
			o.cancel = d.Chance(300)
			if d.Chance(100) {
				o.within = d.Time(1, 5*busy)
			}
			if d.Chance(long) {
				o.hold = d.Time(0, 2*p.TTL)
			}
			u.ops = append(u.ops, o)
		}
		p.Users = append(p.Users, u)
	}
}

func (p *Plan) drawEvents(d *seeds.Dice) {
	var kinds []eventKind
	for k := range eventKinds {
		if d.Chance(200) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return
	}
	for range d.N(6) {
		e := event{kind: seeds.Pick(d, kinds...), process: d.N(p.Processes), name: seeds.Pick(d, names...)}
		e.at = d.Time(0, seeds.Pick(d, 30*time.Millisecond, p.TTL/3, 2*p.TTL))
		e.d = d.Time(0, seeds.Pick(d, 20*time.Millisecond, p.TTL/2, 2*p.TTL))
		p.Events = append(p.Events, e)
	}
}

// prompt reports whether whatever happens is answered, or seen, at once.
func (p *Plan) prompt() bool {
	hangs := p.Rate > 0 && slices.ContainsFunc(p.Faults, fault.takesTime)
	return !hangs && p.Stalls == 0 && !slices.ContainsFunc(p.Events, func(e event) bool {
		return slices.Contains([]eventKind{stop, vanish, cutOff, halfOpen, freeze, standby}, e.kind)
	})
}

// asks reports whether a question for waiters is answered at once.
func (p *Plan) asks() bool {
	return p.prompt() && (p.Rate == 0 || !slices.Contains(p.Faults, refused) && !slices.Contains(p.Faults, refusedDone))
}

// away reports whether the server can be away, or refuse connections.
func (p *Plan) away() bool {
	return slices.ContainsFunc(p.Events, func(e event) bool { return slices.Contains([]eventKind{restart, full, standby}, e.kind) })
}

// bound is how long after the end of a session its holders are told at the latest.
func (p *Plan) bound() time.Duration {
	const soon = 100 * time.Millisecond
	switch {
	case !p.prompt():
		return p.TTL * 5 / 6
	case p.Kind.watches && !p.Kind.blink:
		return soon
	}
	return min(p.TTL/3, p.Kind.heartbeat()) + soon
}
