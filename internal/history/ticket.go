package history

import "time"

// Exported records that the lock was exported: its holder has it no more, and for the time d nobody has it
// but who adopts the ticket.
func (k *Lock) Exported(at Span, d time.Duration) {
	k.h.mu.Lock()
	defer k.h.mu.Unlock()
	k.exported = &promise{at, at.From + d}
}

// Adopted records that a client took on the lock, by its ticket.
func (k *Lock) Adopted(client int, at Span) *Lock {
	return k.h.add(&Lock{h: k.h, client: client, name: k.name, taken: at, from: k})
}
