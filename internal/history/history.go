package history

import (
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// checkTimeout bounds the search for an order, which usually takes milliseconds.
const checkTimeout = 10 * time.Minute

// Span is the time from a request to its answer, or from the beginning to the end of an action.
type Span struct{ From, To time.Duration }

func (s Span) meets(other Span) bool { return s.From <= other.To && other.From <= s.To }

// History records the answers of clients about some locks. It is safe for concurrent use.
type History struct {
	mu        sync.Mutex
	locks     []*Lock          // guarded by mu
	last      map[string]*Lock // guarded by mu: the latest lock of each name
	forgiving []Span           // guarded by mu
}

// Lock is one lock of a history.
type Lock struct {
	h        *History
	number   int // number of the lock in h, from 1
	client   int
	name     string
	taken    Span
	from     *Lock  // the lock that was handed over, or nil
	limit    int    // guarded by h.mu: 0 for an exclusive lock
	token    int64  // guarded by h.mu: 0 if there is none
	alive    []Span // guarded by h.mu
	wrote    []Span // guarded by h.mu
	outdone  []Span // guarded by h.mu
	over     []Span // guarded by h.mu
	released *Span  // guarded by h.mu: nil unless Release returned nil

	extended []*promise // guarded by h.mu
	exported *promise   // guarded by h.mu: nil unless Export returned a ticket
}

// Taken records that a client acquired a lock.
func (h *History) Taken(client int, name string, at Span) *Lock {
	return h.add(&Lock{h: h, client: client, name: name, taken: at})
}

func (h *History) add(k *Lock) *Lock {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.locks = append(h.locks, k)
	k.number = len(h.locks)
	if h.last == nil {
		h.last = make(map[string]*Lock)
	}
	h.last[k.name] = k
	return k
}

// Token records the lock's fencing token.
func (k *Lock) Token(token int64) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.token = token
}

// Alive records that the lock's context was alive.
func (k *Lock) Alive(at Span) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.alive = append(k.alive, at)
}

// Wrote records that a transaction guarded by the lock was committed.
func (k *Lock) Wrote(at Span) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.wrote = append(k.wrote, at)
}

// Outdone records that a higher token than the lock's was in use.
func (k *Lock) Outdone(at Span) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.outdone = append(k.outdone, at)
}

// Over records that the lock, or its ticket, was over.
func (k *Lock) Over(at Span) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.over = append(k.over, at)
}

// Released records that Release returned nil.
func (k *Lock) Released(at Span) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.released = &at
}

// Forgive makes the check ignore claims that a lost lock was alive during this time.
func (h *History) Forgive(at Span) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgiving = append(h.forgiving, at)
}

// holder returns the client that probably holds name now.
func (h *History) holder(name string) (client int, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k := h.last[name]
	if k == nil || k.released != nil || k.exported != nil {
		return 0, false
	}
	return k.client, true
}

// Check reports whether the locks can have been held one at a time: porcupine.Ok, porcupine.Illegal, or
// porcupine.Unknown if the search took too long.
func (h *History) Check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(h.model(), h.operations(), checkTimeout)
}

func (h *History) model() porcupine.Model {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.locks) > 0 && h.locks[0].limit > 0 {
		return together()
	}
	return model()
}

func (h *History) operations() (ops []porcupine.Operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, k := range h.locks {
		mortal := k.released == nil && k.exported == nil
		first := len(ops)
		put := func(said kind, at Span, c claim) {
			c.kind, c.name, c.lock, c.token, c.mortal, c.by = said, k.name, k.number, k.token, mortal, at.To
			ops = append(ops, porcupine.Operation{ClientId: k.client, Input: c, Call: int64(at.From), Return: int64(at.To)})
		}
		add := func(said kind, at Span) { put(said, at, claim{}) }
		if k.from == nil {
			add(taken, k.taken)
		} else {
			put(adopted, k.taken, claim{from: k.from.number})
		}
		for _, p := range k.extended {
			if !mortal || !h.forgives(p.at) {
				put(extended, p.at, claim{until: h.until(p)})
			}
		}
		for _, at := range k.alive {
			if !mortal || !h.forgives(at) {
				add(alive, at)
			}
		}
		for _, at := range k.wrote {
			add(wrote, at)
		}
		for _, at := range k.outdone {
			add(outdone, at)
		}
		for _, at := range k.over {
			add(over, at)
		}
		switch {
		case k.exported != nil:
			put(exported, k.exported.at, claim{until: h.until(k.exported)})
		case !mortal:
			add(released, *k.released)
		}
		k.foresee(ops[first:])
	}
	return ops
}

// forgives reports whether claims at this time are forgiven. The caller must hold mu.
func (h *History) forgives(at Span) bool {
	for _, f := range h.forgiving {
		if f.meets(at) {
			return true
		}
	}
	return false
}
