package sqllock

import (
	"time"

	"github.com/sqllock/sqllock/event"
)

// Event is something that happened to a lock. The hook of its Locker (WithHook) gets it, for metrics and traces.
// Package event defines the kinds.
//
// The hook gets the context of the acquisition or, once the lock is held, the lock's own. Renewed, RenewalFailed and
// Expiring come with a context without values.
type Event struct {
	Kind   event.Kind
	Locker event.Locker
	Name   string // the lock's; empty for event.Renewed, event.RenewalFailed and event.Expiring, which have Locks instead
	Took   time.Duration
	Left   time.Duration // of event.Expiring, which has no Took: how long the locks last unless a renewal is confirmed
	Waited bool          // of event.Acquired and event.Failed: the acquisition waited, and event.Waited came before
	Locks  int
	Token  int64 // the fencing token of a lease, of event.Acquired, event.Released and event.Lost; 0 for a session lock
	Err    error
}
