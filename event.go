package sqllock

import (
	"time"

	"github.com/sqllock/sqllock/event"
)

// Event is something that happened to a lock, as the hook of its Locker (WithHook) is told, for
// metrics and traces. Package event has the kinds.
//
// The context that comes with it is that of the acquisition, or, for what happens to a lock that is held, the lock's own; of the
// kinds without a Name it has no values.
type Event struct {
	Kind   event.Kind
	Locker event.Locker
	Name   string // the lock's; empty for event.Renewed, event.RenewalFailed and event.Expiring, which have Locks instead
	Took   time.Duration
	Locks  int
	Err    error
}
