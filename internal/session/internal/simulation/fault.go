package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/seeds"
	"github.com/sqllock/sqllock/internal/session"
)

// fault is what happens to one statement on a connection.
type fault int

const (
	none        fault = iota
	lost              // the connection breaks before the statement arrives
	unanswered        // the connection breaks after the statement was carried out
	silent            // the statement does not arrive, nor anything after it, and nobody says so
	mute              // the statement is carried out, nothing arrives after it, and nobody says so
	slow              // the statement arrives late, whether its client waits for it or not
	late              // the answer arrives late
	refused           // the server answers with an error, and has done nothing
	refusedDone       // the server answers with an error, and has done what it was asked for
	stallBefore       // the client stalls before it sends the statement
	stallAfter        // the client stalls when it has the answer
	faults            // how many there are
)

var faultNames = [faults]string{
	"no fault", "connection broken before the statement", "connection broken after the statement", "connection cut off before the statement",
	"connection cut off after the statement", "statement late", "answer late", "error", "error of a statement that was carried out",
	"stalled before the statement", "stalled after the answer",
}

func (f fault) String() string { return faultNames[f] }

// takesTime reports whether a client hears of the fault late.
func (f fault) takesTime() bool {
	return slices.Contains([]fault{silent, mute, slow, late, stallBefore, stallAfter}, f)
}

// callID names a statement, whatever other goroutines do: the nth of its kind and subject in a process.
type callID struct {
	process int
	step    string
	about   string
	n       int
}

func (id callID) String() string {
	return fmt.Sprintf("process %d, %s %s no. %d", id.process, id.step, id.about, id.n)
}

// turn is what a statement has coming.
type turn struct {
	id     callID
	fault  fault
	there  time.Duration // how long the request is under way
	back   time.Duration // how long the answer is under way
	delay  time.Duration // of a fault
	notice time.Duration // after what time the server notices that its client has left
	dice   *seeds.Dice   // for the rest
}

// turnOf draws what becomes of a statement.
func (p *Plan) turnOf(id callID) turn {
	d := seeds.NewDice(seeds.MixText(seeds.Mix(p.Seed, uint64(id.process), uint64(id.n)), id.step, id.about))
	t := turn{id: id, dice: d, there: d.Time(20*time.Microsecond, 300*time.Microsecond), back: d.Time(20*time.Microsecond, 200*time.Microsecond)}
	chosen, how, long := d.Chance(p.Rate), d.N(len(p.Faults)+1), d.N(5)
	t.delay = d.Time(0, []time.Duration{2 * time.Millisecond, 30 * time.Millisecond, p.TTL / 3, p.TTL, 3 * p.TTL}[long])
	t.notice = d.Time(100*time.Millisecond, time.Second)
	if chosen && how < len(p.Faults) && (p.Kept == nil || p.Kept[id.String()]) {
		t.fault = p.Faults[how]
	}
	return t
}

// serverError is an answer of the server.
type serverError struct{}

func (serverError) Error() string { return "the server says: canceled" }

var (
	errBroken  = errors.New("the connection broke")
	errTimeout = errors.New("no answer in time")
	errKilled  = errors.New("this process was killed")
	errStandby = &session.PassingRefusalError{Refused: &refusal.Error{Seen: "a standby", Instead: "use the primary"}}
	errFull    = &session.LimitError{Err: errors.New("too many connections"), OfServer: true}
	errDown    = &session.UnavailableError{Err: errors.New("connection refused")}
)
