package history

import "time"

// promise says that nobody else acquires a lock before a certain time, unless it is released. Extensions and tickets
// are promises.
type promise struct {
	at    Span
	until time.Duration // guarded by History.mu
}

// Extended records that the lock was extended: it lasts for d from the request on, whatever happens to its holder.
func (k *Lock) Extended(at Span, d time.Duration) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.extended = append(k.extended, &promise{at, at.From + d})
}

// Void ends all promises at from: an operation began then that may have ended the lock or its ticket, and its outcome
// is unknown.
func (k *Lock) Void(from time.Duration) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	for _, p := range k.extended {
		p.until = min(p.until, from)
	}
	if k.exported != nil {
		k.exported.until = min(k.exported.until, from)
	}
}

// until returns the end of a promise. Forgiving ends it earlier. The caller must hold mu.
func (h *History) until(p *promise) time.Duration {
	until := p.until
	for _, f := range h.forgiving {
		if f.meets(Span{p.at.From, p.until}) {
			until = min(until, f.From)
		}
	}
	return until
}
