package simulation

import (
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// fault is what happens to one call of a store.
type fault int

const (
	none       fault = iota
	lost             // the connection breaks before the statement arrives
	unanswered       // the connection breaks after the statement was carried out
	silent           // the statement does not arrive, and nobody says so
	mute             // the statement is carried out, and nobody says so
	detached         // the connection breaks, and the statement is carried out later
	slow             // the statement arrives late, whether its caller waits for it or not
	late             // the answer arrives late
	refused          // the database says that it undid the statement
	faults           // how many there are
)

var faultNames = [faults]string{
	"no fault", "connection broken before the statement", "connection broken after the statement", "statement lost",
	"answer lost", "connection broken, statement goes on", "statement late", "answer late", "statement refused",
}

func (f fault) String() string { return faultNames[f] }

// callID names a call of a store, whatever other goroutines do: the nth of its kind and subject in a process.
type callID struct {
	process int
	step    string
	about   string
	n       int
}

func (id callID) String() string {
	return fmt.Sprintf("process %d, %s %s no. %d", id.process, id.step, id.about, id.n)
}

// turn is what a call has coming.
type turn struct {
	id     callID
	fault  fault
	there  time.Duration // how long the request is under way
	back   time.Duration // how long the answer is under way
	delay  time.Duration // of a fault
	linger time.Duration // for how long a statement that waits for a row outlives its caller
}

// turnOf draws what becomes of a call.
func (p *Plan) turnOf(id callID) turn {
	d := seeds.NewDice(seeds.MixText(seeds.Mix(p.Seed, uint64(id.process), uint64(id.n)), id.step, id.about))
	t := turn{id: id, there: d.Time(20*time.Microsecond, 300*time.Microsecond), back: d.Time(20*time.Microsecond, 200*time.Microsecond)}
	chosen, how, long := d.Chance(p.Rate), d.N(len(p.Faults)+1), d.N(4)
	t.delay = d.Time(time.Millisecond, []time.Duration{20 * time.Millisecond, p.TTL / 3, p.TTL, 3 * p.TTL}[long])
	t.linger = d.Time(0, 2*p.TTL)
	if chosen && how < len(p.Faults) && (p.Kept == nil || p.Kept[id.String()]) {
		t.fault = p.Faults[how]
	}
	return t
}

var (
	errBroken        = dberr.Classify(errors.New("the connection broke"))
	errDown          = dberr.Classify(errors.New("the server is not there"))
	errKilled        = dberr.Classify(errors.New("this process was killed"))
	errRefused error = &dberr.Error{Err: errors.New("undone because of others"), OutcomeKnown: true, Transient: true}
)
