// Package event has the kinds of events that the hook of a Locker gets, as a sqllock.Event. A hook is set by WithHook of pg, mysql or
// leasetable:
//
//	locker, err := leasetable.New(dsn, leasetable.WithHook(func(ctx context.Context, e sqllock.Event) {
//		if e.Kind == event.Lost {
//			lost.Add(1)
//		}
//	}))
package event

// Kind is what happened.
type Kind string

const (
	// Acquired means that a lock was acquired. Took is the time since it was asked for.
	Acquired Kind = "acquired"
	// Failed means that an acquisition ended without a lock, because of Err, after Took.
	Failed Kind = "failed"
	// Waited means that a call of Acquire found the lock held, or the database not to be used, and its wait is over after Took. Err is
	// nil and Acquired follows, or Err says why the wait was in vain and Failed follows.
	Waited Kind = "waited"
	// Retrying means that a call of Acquire has met Err after Took, which may be over soon, and goes on. One of the calls that wait tells it,
	// when the trouble begins.
	Retrying Kind = "retrying"
	// Released means that a lock was given back by Release, or with Err when its Locker was closed. Took is how long it was held.
	Released Kind = "released"
	// Lost means that a lock ended before its release, because of Err, after it was held for Took.
	Lost Kind = "lost"
	// Renewed means that the server confirmed, after Took, the session or lease that Locks locks live on.
	Renewed Kind = "renewed"
	// RenewalFailed means that the server did not confirm the session or lease that Locks locks live on, because of Err, after Took. It is
	// asked again until the locks' deadline. Of a lease it is told when renewals begin to fail, and every 3 s while they do. A session tells it
	// only if the server answers with an error: one that is not answered, or has ended, is Lost without it.
	RenewalFailed Kind = "renewal failed"
	// Expiring means that a renewal is overdue, and Locks locks, of leases, are Lost after Took unless one is confirmed.
	Expiring Kind = "expiring"
)

// Locker says whose event it is.
type Locker struct {
	Kind   string // of its locks: "session" or "lease"
	System string // the database: "postgresql", "mysql", "mariadb" or "sqlite"; "mysql" for MariaDB until it is connected
	Owner  string // what the Locker calls itself
}
