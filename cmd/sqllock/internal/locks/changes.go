package locks

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
)

// The events of watch.
const (
	eventHeld      = "held"       // it was already held when watch began
	eventTaken     = "taken"      // by a new holder
	eventTakenOver = "taken over" // by a new holder, after the previous lease expired
	eventWaitedFor = "waited for" // there is a waiter, or there are more than before
	eventExpiring  = "expiring"   // not renewed in time
	eventRenewed   = "renewed"    // renewed after it was expiring
	eventExpired   = "expired"    // the holder lost it, and there is no new holder
	eventReleased  = "released"   // released by its holder, or the reason is unknown
	eventTakenAway = "taken away" // by a forced release
	eventKept      = "kept"       // released, and not yet free
	eventFree      = "free"       // no longer kept, or the expired lease was deleted
)

// change is an event of a lock, with the holder concerned.
type change struct {
	event string
	entry
}

// lockID identifies a lock.
type lockID struct{ kind, name string }

func (e entry) lock() lockID {
	if e.kind == database.KindSession {
		return lockID{e.kind, e.serverName}
	}
	return lockID{e.kind, e.name}
}

// is reports whether two entries of a lock have the same holder.
func (e entry) is(other entry) bool { return e.Token == other.Token && e.Session == other.Session }

// ranOut reports whether a lease that was read at one time had expired at a later one, whatever its holder did in
// between. A lease renewed after the read could not have expired by then.
func (e entry) ranOut(read, at time.Time) bool {
	return e.state == stateExpired || !e.Until.IsZero() && !at.Before(e.Until) && at.Before(read.Add(e.TTL))
}

// settled keeps an expired holder for one reading longer than the database does. A takeover deletes the expired lease
// first, so in between the lock can look free.
func settled(before, after reading) reading {
	after.entries = slices.Clone(after.entries)
	for i, n := range after.entries {
		dead := func(o entry) bool {
			return o.lock() == n.lock() && o.is(n) && !o.forgotten &&
				(o.state == stateExpired || o.state == stateHeld && o.ranOut(before.now, after.now))
		}
		if n.kind != database.KindLease || n.state != stateFree {
			continue
		}
		if old := slices.IndexFunc(before.entries, dead); old >= 0 {
			after.entries[i] = before.entries[old]
			after.entries[i].state, after.entries[i].forgotten = stateExpired, true
		}
	}
	return after
}

// changes returns the events between two readings. It misses what began and ended in between. It compares only the
// kinds of lock that were read.
func changes(before, after reading) (all []change) {
	old, now := byLock(before.entries), byLock(after.entries)
	seen := make(map[lockID]bool)
	for _, e := range slices.Concat(before.entries, after.entries) {
		id := e.lock()
		if !after.known[id.kind] || seen[id] {
			continue
		}
		seen[id] = true
		if before.known[id.kind] {
			all = append(all, gone(old[id], now[id], before.now, after.now)...)
		}
		all = append(all, come(old[id], now[id], before)...)
	}
	return all
}

func byLock(entries []entry) map[lockID][]entry {
	by := make(map[lockID][]entry)
	for _, e := range entries {
		by[e.lock()] = append(by[e.lock()], e)
	}
	return by
}

// gone returns what happened to the previous holders of a lock.
func gone(old, now []entry, read, at time.Time) (all []change) {
	for _, o := range old {
		if o.state == stateFree {
			continue
		}
		var event string
		if i := slices.IndexFunc(now, o.is); i >= 0 {
			event = stayed(o, now[i], read, at)
			if now[i].state != stateFree {
				o = now[i] // the newer state of the same holder
			}
		} else {
			event = left(o, now, read, at)
		}
		switch event {
		case "":
			continue
		case eventExpired:
			o.state = stateExpired
		case eventReleased, eventTakenAway, eventFree:
			o.state, o.Until = stateFree, time.Time{}
		}
		all = append(all, change{event, o})
	}
	return all
}

// stayed returns the event of a holder that is still in the newer reading.
func stayed(o, n entry, read, at time.Time) string {
	switch {
	case n.state == o.state && n.soon(at) == o.soon(read):
		return ""
	case n.state == stateExpired:
		return eventExpired
	case n.state == stateKept:
		return eventKept
	case n.state == stateFree && o.state == stateHeld:
		return eventReleased
	case n.state == stateFree:
		return eventFree
	case n.soon(at):
		return eventExpiring
	}
	return eventRenewed
}

// left returns what happened to a holder that is not in the newer reading, as far as that can be known. The lease
// expired only if its time was over when the next holder took the lock. It was taken away only if nobody has taken the
// lock since.
func left(o entry, now []entry, read, at time.Time) string {
	followed := len(now) > 0 && now[0].state != stateFree
	switch {
	case o.state == stateExpired && followed:
		return "" // reported before
	case o.state != stateHeld:
		return eventFree
	case o.shared || o.limit > 0 || len(now) == 0:
	case !o.precedes(now[0]): // there were other holders in between
		return eventReleased
	case !followed && now[0].taken.Equal(o.taken): // the token has risen although nobody acquired the lock
		return eventTakenAway
	case followed:
		at = now[0].Since
	default:
		at = now[0].taken
	}
	if o.ranOut(read, at) {
		return eventExpired
	}
	return eventReleased
}

// precedes reports whether the token of n directly follows that of e, which means that nobody held the lease in
// between.
func (e entry) precedes(n entry) bool { return n.Token == e.Token+1 }

// come returns the events of new holders, and whether there are more waiters than before.
func come(old, now []entry, before reading) (all []change) {
	for _, n := range now {
		if n.state == stateFree || slices.ContainsFunc(old, n.is) {
			continue
		}
		event := eventTaken
		alone := !n.shared && n.limit == 0
		switch overtaken := func(o entry) bool { return alone && o.precedes(n) && o.ranOut(before.now, n.Since) }; {
		case n.state == stateExpired:
			event = eventExpired
		case n.state == stateKept:
			event = eventKept
		case !before.known[n.kind]:
			event = eventHeld
		case slices.ContainsFunc(old, overtaken):
			event = eventTakenOver
		}
		all = append(all, change{event, n})
	}
	if len(now) > 0 && now[0].state == stateHeld && waiters(now) > waiters(old) {
		all = append(all, change{eventWaitedFor, now[0]})
	}
	return all
}

// waiters returns the known number of waiters for a lock.
func waiters(entries []entry) int {
	n := 0
	for _, e := range entries {
		n = max(n, e.Waiters)
		if e.wanted() {
			n = max(n, 1)
		}
	}
	return n
}
