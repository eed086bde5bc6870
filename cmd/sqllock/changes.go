package main

import (
	"slices"
	"time"
)

// What happens to a lock, as watch sees it.
const (
	eventHeld      = "held"       // since before watch has looked
	eventTaken     = "taken"      // by a new holder
	eventTakenOver = "taken over" // by a new holder, from a lease that has expired
	eventWaitedFor = "waited for" // by somebody, or by more than before
	eventExpiring  = "expiring"   // it was not renewed in time
	eventRenewed   = "renewed"    // after that
	eventExpired   = "expired"    // the holder has lost it, and nobody has followed
	eventReleased  = "released"   // or what cannot be told
	eventTakenAway = "taken away" // from its holder, by force
	eventKept      = "kept"       // released, and not yet free
	eventFree      = "free"       // no longer kept, or the dead holder was forgotten
)

// change is what happened to a lock, with the holder that it happened to.
type change struct {
	event string
	entry
}

// lockID tells locks apart.
type lockID struct{ kind, name string }

func (e entry) lock() lockID {
	if e.kind == kindSession {
		return lockID{e.kind, e.serverName}
	}
	return lockID{e.kind, e.name}
}

// is reports whether two entries of a lock are of the same holder.
func (e entry) is(other entry) bool { return e.Token == other.Token && e.Session == other.Session }

// ranOut reports whether a lease that was read at one time was over at another, whatever its holder
// did in between: if it had been renewed since, it would not be over.
func (e entry) ranOut(read, at time.Time) bool {
	return e.state == stateExpired || !e.Until.IsZero() && !at.Before(e.Until) && at.Before(read.Add(e.TTL))
}

// settled has dead holders for one reading longer than the database. Who takes a lock over deletes the dead lease first,
// and so the lock can look free in between.
func settled(before, after reading) reading {
	after.entries = slices.Clone(after.entries)
	for i, n := range after.entries {
		dead := func(o entry) bool {
			return o.lock() == n.lock() && o.is(n) && !o.forgotten &&
				(o.state == stateExpired || o.state == stateHeld && o.ranOut(before.now, after.now))
		}
		if n.kind != kindLease || n.state != stateFree {
			continue
		}
		if old := slices.IndexFunc(before.entries, dead); old >= 0 {
			after.entries[i] = before.entries[old]
			after.entries[i].state, after.entries[i].forgotten = stateExpired, true
		}
	}
	return after
}

// changes tells what happened between two readings. What began and ended in between is not seen,
// and a kind of lock that was not read is not compared.
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

// gone tells what became of those who held a lock.
func gone(old, now []entry, read, at time.Time) (all []change) {
	for _, o := range old {
		if o.state == stateFree {
			continue
		}
		var event string
		if i := slices.IndexFunc(now, o.is); i >= 0 {
			event = stayed(o, now[i], read, at)
			if now[i].state != stateFree {
				o = now[i] // which has news of the same holder
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

// stayed tells what happened to a holder whom nobody has followed.
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

// left tells what became of a holder who is not known any more, as far as that can be told: that its lease ran out
// only if it was over when the next one took the lock, and that it was taken away only if nobody took the lock since.
func left(o entry, now []entry, read, at time.Time) string {
	followed := len(now) > 0 && now[0].state != stateFree
	switch {
	case o.state == stateExpired && followed:
		return "" // which was told before
	case o.state != stateHeld:
		return eventFree
	case o.shared || o.limit > 0 || len(now) == 0:
	case !o.precedes(now[0]): // others have had it since
		return eventReleased
	case !followed && now[0].taken.Equal(o.taken): // the token has risen, though nobody has taken it
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

// precedes reports whether n has the token that follows that of e: nobody had the lease in between.
func (e entry) precedes(n entry) bool { return n.Token == e.Token+1 }

// come tells who holds a lock that did not before, and whether more wait for it.
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

// waiters is how many are known to wait for a lock.
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
