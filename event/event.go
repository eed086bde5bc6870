// Package event defines the kinds of events that the hook of a Locker gets, as a sqllock.Event. WithHook of pg, mysql
// or leasetable sets the hook:
//
//	locker, err := leasetable.New(dsn, leasetable.WithHook(func(ctx context.Context, e sqllock.Event) {
//		if e.Kind == event.Lost {
//			lost.Add(1)
//		}
//	}))
package event

import "time"

// Kind is the kind of an event.
type Kind string

const (
	// Acquired means that a lock was acquired. Took is the time since it was requested. Released or Lost follows, also if the
	// hook panics at Acquired. The names of AcquireAll and TryAcquireAll are reported when all of them are acquired, not before:
	// until then the caller has no lock. What the Locker acquires for a caller that has left is not reported.
	Acquired Kind = "acquired"
	// Failed means that an acquisition ended without a lock, because of Err, after Took: a call of TryAcquire, Acquire or
	// Adopt, also if its arguments are invalid or the name is held. A call of AcquireAll or TryAcquireAll that fails reports each
	// name that made it fail and, with the error of the call, each name that it had acquired and gives back. It does not report
	// names that it did not come to, or only tried for before it waited, nor a call without names, or with an option that makes
	// all names the same lock.
	Failed Kind = "failed"
	// Waiting means that a call of Acquire found the lock held, or the database unusable, and waits. Took is the time
	// since the call. Waited follows, also if the hook panics at Waiting.
	Waiting Kind = "waiting"
	// Waited means that the wait of a call of Acquire ended, after Took since the call. If Err is nil, Acquired follows, or
	// Failed if it was a part of an AcquireAll that fails later. Otherwise Err says why the wait failed, and Failed follows.
	Waited Kind = "waited"
	// Retrying means that a call of Acquire got Err after Took, which may pass, and continues to wait. When such
	// trouble begins, one of the waiting calls reports it. Trouble that comes again and again is reported after 3 s, after
	// 6 s, and so on up to 5 minutes, until there was none for a minute.
	Retrying Kind = "retrying"
	// Released means that a lock was given back: by Release, by an Export, also one that fails and releases it instead, or, with
	// Err, by closing its Locker. Took is how long it was held. It does not come if the server did not confirm the release:
	// that is Lost.
	Released Kind = "released"
	// Lost means that a lock ended before its release, because of Err, after it was held for Took, or that the server did not
	// confirm its release.
	Lost Kind = "lost"
	// Renewed means that the server confirmed, after Took, a session or lease that has Locks locks.
	Renewed Kind = "renewed"
	// RenewalFailed means that the server did not confirm a session or lease that has Locks locks, because of Err,
	// after Took. The renewal is retried until the locks' deadline. For a lease, it is reported when renewals begin to
	// fail, and every 3 s while they do. For a session, it is reported only if the server answers with an error: a
	// session that gets no answer, or has ended, is Lost without it. It does not come once Close of the Locker has begun.
	RenewalFailed Kind = "renewal failed"
	// Expiring means that a renewal of leases is overdue: Locks locks are Lost after Left unless a renewal is
	// confirmed.
	Expiring Kind = "expiring"
)

// Locker identifies the Locker of an event.
type Locker struct {
	Kind   string // the kind of its locks: "session" or "lease"
	System string // the database: "postgresql", "mysql", "mariadb" or "sqlite"; "mysql" for MariaDB until it is connected
	Owner  string // the name that the Locker gives itself
	Holds  Holds  // what it holds at the time of a call; the same value in all events of a Locker
}

// Holds says what a Locker holds. It asks no database, and may be called from a hook.
type Holds interface {
	// Remaining returns how long the locks that the Locker holds last without another renewal: the least time of all of
	// them, from 0 to their TTL. held is false if it holds none.
	Remaining() (left time.Duration, held bool)
}
