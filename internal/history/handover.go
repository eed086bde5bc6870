//go:build unix

package history

import (
	"context"
	"strings"
)

// adoptions bounds the attempts to adopt a ticket.
const adoptions = 3

// handOver moves the lock to another process. If it is unknown whether that process has adopted the ticket, handOver
// tries another process.
func (h *holding) handOver(ctx context.Context) bool {
	valid := h.run.opts.TTL
	text, at, ok := h.on.ask(h.id, doExport+" "+valid.String())
	if !ok {
		h.died(at)
		return false
	}
	ticket, exported := strings.CutPrefix(text, didExport+" ")
	if !exported {
		h.said(h.on, doExport, text)
		if text == isLost {
			h.lock.Void(at.From) // it may have been released instead
			h.lost = true
		}
		return true
	}
	h.said(h.on, doExport, didExport)
	old := *h
	old.lock.Exported(at, valid)
	for range adoptions {
		h.pause(ctx)
		old.afterwards()
		if h.adopt(h.run.another(old.on, h.rand.IntN), ticket); h.on != old.on {
			old.afterwards()
			old.adoptAgain(ticket)
			return true
		}
		if h.lost {
			break
		}
	}
	h.gone = true
	return true
}

// adopt makes another process adopt the ticket.
func (h *holding) adopt(heir *process, ticket string) {
	text, at, ok := heir.ask(h.id, doAdopt+" "+ticket)
	if !ok {
		h.died(at)
		return
	}
	word, token := withToken(text)
	switch h.said(heir, doAdopt, word); word {
	case didTake:
		h.lock = h.lock.Adopted(h.client(heir), at)
		h.lock.Token(token)
		h.on = heir
	case isLost:
		h.lock.Over(at)
		h.lost = true
	default:
		h.lock.Void(at.From) // it continues in the background
	}
}

// afterwards sometimes sends a request to the old holder, whose lock is over.
func (h *holding) afterwards() {
	if h.rand.IntN(2) == 0 {
		return
	}
	verb := h.one(doCheck, doGuard, doFence)
	if text, at, ok := h.on.ask(h.id, verb); ok {
		h.said(h.on, "afterwards "+verb, text)
		h.claims(h.lock, verb, text, at)
	}
}

// adoptAgain sometimes makes the old holder try a ticket that was adopted already.
func (h *holding) adoptAgain(ticket string) {
	if h.rand.IntN(4) > 0 {
		return
	}
	text, at, ok := h.on.ask(h.id, doAdopt+" "+ticket)
	if !ok {
		return
	}
	word, token := withToken(text)
	if h.said(h.on, "afterwards "+doAdopt, word); word == didTake {
		h.lock.Adopted(h.client(h.on), at).Token(token)
	}
}
