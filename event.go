package sqllock

import "time"

// Event is something that happened to a lock, as the hook of its Locker (WithHook) is told, for
// metrics and traces.
//
//   - "acquired": Took is the time since it was asked for.
//   - "waited": a call of Acquire found the lock held, or the database not to be used; its wait is over after Took. Err is why it
//     was in vain, or nil: then "acquired" follows.
//   - "retrying": a call of Acquire has met Err after Took, which may be over soon, and goes on. It is told when
//     such trouble begins, by one call of those that meet it.
//   - "released": by Release, or with Err when the Locker was closed. Took is how long it was held.
//   - "lost": the lock ended before its release, because of Err, after it was held for Took.
//   - "expiring": a renewal is overdue, and Locks locks, of leases, are "lost" after Took unless one is
//     confirmed.
//   - "renewed": the server confirmed, after Took, the session or lease that Locks locks live on.
type Event struct {
	Kind  string
	Name  string // the lock's; empty for "renewed" and "expiring"
	Took  time.Duration
	Locks int // "renewed" and "expiring" only
	Err   error
}
