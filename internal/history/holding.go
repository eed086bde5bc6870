//go:build unix

package history

import (
	"context"
	"time"
)

// holding is a lock that a worker has taken, and where it is.
type holding struct {
	*worker
	on   *process
	lock *Lock
	lost bool // an answer said so
	gone bool // it is nowhere: there is nothing to release
}

// hold looks at the lock for a while and gives it back. It reports false when the process where the lock
// was has ended.
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

// verb is what a holder is asked: to write, above all, when it is about to be stopped, or to last for longer.
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

// ask asks the holder, and records what it said.
func (h *holding) ask(verb string) bool {
	text, at, ok := h.on.ask(h.id, verb)
	switch {
	case text == isLost && h.run.opts.Moves:
		h.lock.Over(at)
	case verb == doRelease && text != didRelease:
		h.lock.Void(at.From) // it goes on in the background, or was done by a process that ended then
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

// claims records what a holder said of its lock, unless that it is over.
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

// died counts a process that ended while it moved the lock, and may have done that.
func (h *holding) died(at Span) {
	h.run.count("died with it")
	h.lock.Void(at.From)
}

// extend has the holder extend its lock, for a time that is a bit shorter or longer than the TTL. After an
// error that is not the lock's end the lock may be on either of two leases.
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
