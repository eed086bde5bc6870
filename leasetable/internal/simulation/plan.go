package simulation

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
)

// Plan is what a seed chooses.
type Plan struct {
	Seed      uint64
	Kind      memory.Kind
	TTL       time.Duration
	Processes int
	Users     []user
	Events    []event
	Faults    []fault // the kinds of faults of calls
	Rate      int     // how many calls of a thousand have one

	Kept map[string]bool // the calls that have their faults; nil: all
}

// user is one goroutine of a process.
type user struct {
	process int
	ops     []op
}

// op is one use of a name: how it is acquired, what is done with it, and how it is given up.
type op struct {
	kind    opKind
	name    string
	how     holdKind
	pause   time.Duration // before
	wait    time.Duration // a deadline; 0: none
	hold    time.Duration // after each of the acts
	minHold time.Duration
	acts    []act
	export  time.Duration // instead of a release; 0: none
}

type opKind int

const (
	try opKind = iota
	acquire
	acquireAll
	adopt
	elect
	reopen
	opKinds
)

var opNames = [opKinds]string{"try", "acquire", "acquire all", "adopt", "campaign for", "close and open again"}

type holdKind int

const (
	whole holdKind = iota
	share
	permit // one of two
)

var holdNames = []string{"", "a share of ", "a permit of "}

type act int

const (
	guard act = iota
	extend
	renew
	verify
	attach
	guardOn // the transaction may be open when the lock is released
	actKinds
)

var actNames = [actKinds]string{"guard and write", "extend", "renew", "verify", "set metadata", "guard and write meanwhile"}

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
	cutOff
	restart
	crash
	lockRow
	force
	purge
	clockBack
	clockAhead
	failover
	eventKinds
)

var eventNames = [eventKinds]string{
	"a process is stopped", "a process is killed", "a process is cut off", "the server restarts", "the server crashes after the next release", "somebody keeps a row locked",
	"a name is released by force", "leases are purged", "the clock is set back", "the clock is set ahead", "a failover forgets",
}

var names = []string{"a", "b", "c"}

// NewPlan draws the plan of a seed.
func NewPlan(seed uint64) *Plan {
	d := seeds.NewDice(seeds.Mix(seed, 1))
	p := &Plan{
		Seed:      seed,
		Kind:      seeds.Pick(d, memory.Postgres, memory.Postgres, memory.MySQL, memory.SQLite),
		TTL:       seeds.Pick(d, 300*time.Millisecond, 600*time.Millisecond, 1200*time.Millisecond),
		Processes: 2 + d.N(2),
	}
	for f := none + 1; f < faults; f++ {
		if d.Chance(400) {
			p.Faults = append(p.Faults, f)
		}
	}
	p.Rate = seeds.Pick(d, 0, 20, 60, 150)
	p.drawUsers(d)
	p.drawEvents(d)
	return p
}

// prompt reports whether no statement hangs, except at the database.
func (p *Plan) prompt() bool {
	hangs := slices.ContainsFunc(p.Faults, func(f fault) bool { return f == silent || f == mute || f == slow || f == late })
	return (!hangs || p.Rate == 0) && !slices.ContainsFunc(p.Events, func(e event) bool {
		return e.kind == stop || e.kind == cutOff || e.kind == restart || e.kind == crash
	})
}

func (p *Plan) drawUsers(d *seeds.Dice) {
	busy := seeds.Pick(d, time.Millisecond, 20*time.Millisecond, 100*time.Millisecond)
	spread := 1 + d.N(len(names))
	kinds := []opKind{try, acquire, acquire}
	for _, more := range []opKind{acquireAll, adopt, elect, reopen} {
		if d.Chance(350) {
			kinds = append(kinds, more)
		}
	}
	hows := [][]holdKind{{whole}, {whole}, {whole}}
	for i := range hows {
		if d.Chance(400) {
			hows[i] = append(hows[i], seeds.Pick(d, share, permit))
		}
	}
	long := seeds.Pick(d, 60, 60, 400)
	exports, keeps := d.Chance(300), d.Chance(200)
	more := 0 // users of the first process, which hand a name on to each other
	if d.Chance(350) {
		more = 2 + d.N(3)
	}
	for i := range p.Processes*2 + more {
		u := user{process: i % p.Processes}
		if i >= p.Processes*2 {
			u.process = 0
		}
		for range 6 + d.N(4) {
			n := d.N(spread)
			o := op{kind: seeds.Pick(d, kinds...), name: names[n], how: seeds.Pick(d, hows[n]...), pause: d.Time(0, busy), hold: d.Time(0, busy)}
			if o.kind == reopen && d.Chance(700) {
				o.kind = try
			}
			o.wait = seeds.Pick(d, 0, d.Time(0, 5*busy), d.Time(0, 2*p.TTL))
			if d.Chance(long) {
				o.hold = d.Time(0, 3*p.TTL)
			}
			for range d.N(3) {
				o.acts = append(o.acts, seeds.Pick(d, guard, guard, extend, renew, verify, attach, guardOn))
			}
			if o.how == whole && exports && d.Chance(300) {
				o.export = d.Time(200*time.Millisecond, 2*time.Second)
			}
			if o.how == whole && keeps && d.Chance(300) {
				o.minHold = d.Time(0, p.TTL/2)
			}
			u.ops = append(u.ops, o)
		}
		p.Users = append(p.Users, u)
	}
}

func (p *Plan) drawEvents(d *seeds.Dice) {
	var kinds []eventKind
	for k := range eventKinds {
		if d.Chance(map[eventKind]int{clockAhead: 60, failover: 60, force: 250, kill: 200}[k] + 150*min(1, int(k+1))) {
			kinds = append(kinds, k)
		}
	}
	if len(kinds) == 0 {
		return
	}
	for range d.N(7) {
		e := event{kind: seeds.Pick(d, kinds...), at: d.Time(0, seeds.Pick(d, 100*time.Millisecond, p.TTL, 3*p.TTL)), process: d.N(p.Processes), name: seeds.Pick(d, names...)}
		e.d = d.Time(0, seeds.Pick(d, 20*time.Millisecond, p.TTL, 3*p.TTL))
		p.Events = append(p.Events, e)
	}
}
