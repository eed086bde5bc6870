package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// kind is the kind of a claim about a lock.
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

// claim is the input of an operation. It includes the answer: another answer would not be an operation.
type claim struct {
	kind   kind
	name   string
	lock   int   // number of the lock in the history, from 1
	token  int64 // the lock's token, or 0
	mortal bool  // the lock was not released, so its end is unknown
	from   int   // the lock that was adopted
	limit  int   // the limit of a shared lock, or 0
	left   int   // taken, with a limit: number of later claims that the lock was held

	by    time.Duration // when the answer was read
	until time.Duration // the earliest end of the lock, or of its ticket
}

func (c claim) words() string { return fmt.Sprintf("%s %d (token %d)", c.kind, c.lock, c.token) }

// holder is the state of a name.
type holder struct {
	lock   int   // the lock that is held, or 0
	token  int64 // the token of the last lock
	mortal bool  // the lock may have ended
	ticket bool  // the lock was exported, and nobody has adopted it

	until time.Duration // the lock cannot end before
}

// holds reports whether a lock is held by its own holder.
func (h holder) holds(lock int) bool { return h.lock == lock && !h.ticket }

// mayEnd reports whether the lock may have ended by this time without anybody knowing.
func (h holder) mayEnd(by time.Duration) bool { return h.mortal && by >= h.until }

// model is the model of one exclusive lock per name.
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

// step is the transition function of a lock: one holder at a time, and each acquisition has a higher token. A lock with
// an unknown end gives way to the next one; if that was too early, a later claim that it was alive or guarded a write
// shows it. An extended lock, or a ticket, gives way only after its time has passed.
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
