//go:build unix

package history

import (
	"context"
	"time"
)

// holding is a lock that a worker has acquired, with the process where it is.
type holding struct {
	*worker
	on   *process
	lock *Lock
	lost bool // an answer said so
	gone bool // no process has it: there is nothing to release
}

// hold uses the lock for a while and releases it. It returns false if the process with the lock has ended.
func (h *holding) hold(ctx context.Context) bool {
	for least := h.rand.IntN(4); least > 0 || !h.lost && h.on.keep.Load(); least-- {
		h.pause(ctx)
		var answered bool
		switch verb := h.verb(); verb {
		case doExport:
			answered = h.handOver(ctx)
		case doExtend:
			answered = h.extend()
		default:
			answered = h.ask(verb)
		}
		if h.gone || !answered {
			return answered
		}
	}
	return h.ask(doRelease)
}

// verb chooses the next request to a holder. Before a stop it is mainly a write or an extension.
func (h *holding) verb() string {
	switch {
	case !h.run.opts.Writes:
		return doCheck
	case h.on.keep.Load() && h.rand.IntN(4) > 0:
		if h.run.opts.Moves && h.rand.IntN(3) == 0 {
			return doExtend
		}
		return doGuard
	case h.run.opts.Moves && h.rand.IntN(3) == 0:
		return h.one(doExtend, doExport)
	}
	return h.one(doCheck, doGuard, doFence)
}

func (h *holding) one(verbs ...string) string { return verbs[h.rand.IntN(len(verbs))] }

// ask sends a request to the holder, and records the answer.
func (h *holding) ask(verb string) bool {
	text, at, ok := h.on.ask(h.id, verb)
	switch {
	case text == isLost && h.run.opts.Moves:
		h.lock.Over(at)
	case verb == doRelease && text != didRelease:
		h.lock.Void(at.From) // it continues in the background, or a process did it and then ended
	}
	if !ok {
		h.run.count("died with it")
		return false
	}
	h.said(h.on, verb, text)
	h.claims(h.lock, verb, text, at)
	h.lost = h.lost || text == isLost || text == isOutdone
	return true
}

// claims records the answer of a holder about its lock, except that it is over.
func (h *holding) claims(lock *Lock, verb, text string, at Span) {
	switch {
	case text == isAlive:
		lock.Alive(at)
	case text == didWrite && verb == doGuard:
		lock.Wrote(at)
	case text == isOutdone:
		lock.Outdone(at)
	case text == didRelease:
		lock.Released(at)
	}
}

// died counts a process that ended while it moved the lock. The outcome of the move is unknown.
func (h *holding) died(at Span) {
	h.run.count("died with it")
	h.lock.Void(at.From)
}

// extend extends the lock, for a time somewhat shorter or longer than the TTL. After an error that does not end the
// lock, the lock may be on either of two leases.
func (h *holding) extend() bool {
	d := h.run.opts.TTL/2 + time.Duration(h.rand.Int64N(int64(h.run.opts.TTL)))
	text, at, ok := h.on.ask(h.id, doExtend+" "+d.String())
	if !ok {
		h.died(at)
		return false
	}
	switch h.said(h.on, doExtend, text); text {
	case didExtend:
		h.lock.Extended(at, d)
	case isLost:
		h.lock.Over(at)
		h.lost = true
	default:
		h.lock.Void(at.From)
	}
	return true
}
