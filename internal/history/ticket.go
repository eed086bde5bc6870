package history

import "time"

// Exported records that the lock was exported: its holder does not hold it any more. For the duration d only the client
// that adopts the ticket can hold it.
func (k *Lock) Exported(at Span, d time.Duration) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.exported = &promise{at, at.From + d}
}

// Adopted records that a client adopted the lock by its ticket.
func (k *Lock) Adopted(client int, at Span) *Lock {
	return k.h.add(&Lock{h: k.h, client: client, name: k.name, taken: at, from: k})
}
