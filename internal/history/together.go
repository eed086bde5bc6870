package history

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Any is the limit of a name that any number hold together.
const Any = math.MaxInt

// Together records that the lock was asked for with a limit: so many may hold its name at a time, or as many as the smallest limit
// of those who do. Who asks with Any holds it only beside others who do, and who asks with 1 is alone. All locks of a history have a limit, or none has.
func (k *Lock) Together(limit int) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.limit = limit
}

// room is the state of a name that several may hold together.
type room struct {
	held  []seat // in the order in which they came
	token int64  // the highest
}

// seat is one who holds a name together with others.
type seat struct {
	lock  int
	limit int
	left  int // how many claims are still to come
}

// together is a semaphore per name, or readers and a writer: a writer's limit is 1, and a reader's Any.
func together() porcupine.Model {
	return porcupine.Model{
		Partition: byName,
		Init:      func() any { return room{} },
		Step: func(state, input, _ any) (bool, any) {
			return enter(state.(room), input.(claim))
		},
		Equal: func(a, b any) bool {
			return a.(room).token == b.(room).token && slices.Equal(a.(room).held, b.(room).held)
		},
		DescribeOperation: func(input, _ any) string { return input.(claim).words() },
		DescribeState: func(state any) string {
			return fmt.Sprintf("%+v", state)
		},
	}
}

// enter is what such a lock is: taken while there is room by its limit and by that of each who holds it, with a higher token than all
// before. One that was not released may have ended at any time after its last claim, and makes room right then:
// what others are told does not need it to be held for longer.
func enter(now room, c claim) (bool, room) {
	at := slices.IndexFunc(now.held, func(s seat) bool { return s.lock == c.lock })
	switch c.kind {
	case taken:
		rises := c.token == 0 || c.token > now.token
		others := slices.ContainsFunc(now.held, func(s seat) bool {
			return (s.limit == Any) != (c.limit == Any) || len(now.held) >= s.limit
		})
		next := room{held: slices.Clone(now.held), token: max(now.token, c.token)}
		if c.left > 0 {
			next.held = append(next.held, seat{c.lock, c.limit, c.left})
		}
		return rises && !others && len(now.held) < c.limit, next
	case alive, wrote, released:
		if at < 0 {
			return false, now
		}
		next := room{held: slices.Clone(now.held), token: now.token}
		if next.held[at].left--; next.held[at].left == 0 || c.kind == released {
			next.held = slices.Delete(next.held, at, at+1)
		}
		return true, next
	case outdone:
		return now.token > c.token, now
	case over, extended, exported, adopted: // there is no such thing of a lock that several hold
	}
	return false, now
}

// foresee has the first claim of a lock, if it has a limit, say that, and how many of the others say that it was held.
// It is called with h.mu held.
func (k *Lock) foresee(claims []porcupine.Operation) {
	if k.limit == 0 {
		return
	}
	first := claims[0].Input.(claim)
	first.limit = k.limit
	for _, op := range claims {
		if kind := op.Input.(claim).kind; kind == alive || kind == wrote || kind == released {
			first.left++
		}
	}
	claims[0].Input = first
}
