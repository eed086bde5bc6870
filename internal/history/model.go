package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is what a client was told about a lock.
type kind string

const (
	taken    kind = "taken"
	alive    kind = "alive"
	wrote    kind = "wrote"
	outdone  kind = "outdone"
	released kind = "released"
	over     kind = "over"
	extended kind = "extended"
	exported kind = "exported"
	adopted  kind = "adopted"
)

// claim is the input of an operation. The answer is part of it: one that says something else is not an
// operation.
type claim struct {
	kind   kind
	name   string
	lock   int   // counts the locks of a history, from 1
	token  int64 // the lock's, or 0
	mortal bool  // the lock was not released, and so ended nobody knows when
	from   int   // the lock that was adopted
	limit  int   // of a lock that was taken together with others, or 0
	left   int   // claims that follow a lock that was taken and say that it was held; if there is a limit

	by    time.Duration // when the answer was there
	until time.Duration // when the lock, or its ticket, may end at the earliest
}

func (c claim) words() string { return fmt.Sprintf("%s %d (token %d)", c.kind, c.lock, c.token) }

// holder is the state of a name.
type holder struct {
	lock   int   // that is held, or 0
	token  int64 // of the last lock
	mortal bool  // the lock may have ended
	ticket bool  // the lock was handed over, and nobody has adopted it

	until time.Duration // but not before
}

// holds reports whether a lock is held, by its own holder.
func (h holder) holds(lock int) bool { return h.lock == lock && !h.ticket }

// mayEnd reports whether what is held may have ended by then, though nobody was told.
func (h holder) mayEnd(by time.Duration) bool { return h.mortal && by >= h.until }

// model is one lock per name.
func model() porcupine.Model {
	return porcupine.Model{
		Partition: byName,
		Init:      func() any { return holder{} },
		Step: func(state, input, _ any) (bool, any) {
			return step(state.(holder), input.(claim))
		},
		DescribeOperation: func(input, _ any) string { return input.(claim).words() },
		DescribeState: func(state any) string {
			return fmt.Sprintf("%+v", state)
		},
	}
}

// step is what a lock is: taken by one at a time, with a higher token each. A lock that ended nobody
// knows when makes way for the next; whether that was too early shows when it is said to be alive
// afterwards, or to have guarded something. One that was extended makes way when that time has passed, and
// so does a ticket.
func step(now holder, c claim) (bool, holder) {
	switch c.kind {
	case taken:
		rises := c.token == 0 || c.token > now.token
		return rises && (now.lock == 0 || now.mayEnd(c.by)), holder{lock: c.lock, token: c.token, mortal: c.mortal}
	case adopted:
		next := c.token == 0 || c.token == now.token+1
		return next && now.lock == c.from && now.ticket, holder{lock: c.lock, token: c.token, mortal: c.mortal}
	case alive, wrote:
		return now.holds(c.lock), now
	case extended:
		holds := now.holds(c.lock)
		now.until = max(now.until, c.until)
		return holds, now
	case exported:
		return now.holds(c.lock), holder{lock: c.lock, token: now.token, mortal: true, ticket: true, until: c.until}
	case over:
		return now.lock != c.lock || now.mayEnd(c.by), now
	case outdone:
		return now.token > c.token, now
	case released:
		return now.holds(c.lock), holder{token: now.token}
	}
	return false, now
}

func byName(ops []porcupine.Operation) [][]porcupine.Operation {
	parts := make(map[string][]porcupine.Operation)
	for _, op := range ops {
		name := op.Input.(claim).name
		parts[name] = append(parts[name], op)
	}
	sorted := make([][]porcupine.Operation, 0, len(parts))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		sorted = append(sorted, parts[name])
	}
	return sorted
}
