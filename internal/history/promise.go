package history

import "time"

// promise is that nobody else gets a lock before a certain time, unless it is released: what an
// extension says, and a ticket.
type promise struct {
	at    Span
	until time.Duration // guarded by History.mu
}

// Extended records that the lock was extended, and that it lasts for d from then whatever happens to its
// holder.
func (k *Lock) Extended(at Span, d time.Duration) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.extended = append(k.extended, &promise{at, at.From + d})
}

// Void leaves out what was promised for the time after from: something has begun then that may have ended
// the lock, or its ticket, and nobody knows.
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

// until is how long a promise lasts: what is forgiven ends it. It is called with mu held.
func (h *History) until(p *promise) time.Duration {
	until := p.until
	for _, f := range h.forgiving {
		if f.meets(Span{p.at.From, p.until}) {
			until = min(until, f.From)
		}
	}
	return until
}
