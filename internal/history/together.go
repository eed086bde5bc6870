package history

import (
	"fmt"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"
)

// Any is the limit of a name without a maximum number of holders.
const Any = math.MaxInt

// Together records that the lock was requested with a limit on the number of holders. The smallest limit among the
// holders applies. With Any the lock can be held only together with other locks with Any, and with 1 only alone. Either
// all locks of a history have a limit, or none.
func (k *Lock) Together(limit int) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.limit = limit
}

// room is the state of a name that several clients may hold together.
type room struct {
	held  []seat // in the order of acquisition
	token int64  // the highest so far
}

// seat is one of the holders of a name.
type seat struct {
	lock  int
	limit int
	left  int // number of claims still to come
}

// together is the model of a semaphore per name, or of readers and a writer: a writer's limit is 1, and a reader's is
// Any.
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

// enter is the transition function of such a lock. It can be acquired if its own limit and the limit of each holder
// allow it, and the token must be higher than all before. A lock that was not released may have ended at any time after
// its last claim, and makes room immediately after that claim: the other answers do not require it to be held for
// longer.
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
	case over, extended, exported, adopted: // they do not exist for a lock with several holders
	}
	return false, now
}

// foresee adds the limit, if there is one, and the number of claims that the lock was held to the first claim of the
// lock. The caller must hold h.mu.
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
