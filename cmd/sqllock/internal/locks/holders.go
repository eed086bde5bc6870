package locks

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/leasetable"
)

// The states of a lock.
const (
	stateHeld    = "held"
	stateKept    = "kept"    // released, and not free before Until
	stateExpired = "expired" // its holder is dead, and there is no new holder
	stateFree    = "free"
)

// entry is a lock with one of its holders, or with its last holder.
type entry struct {
	name       string // empty if only serverName is known
	serverName string // the server's name of a session lock
	kind       string
	state      string
	shared     bool // any number of holders
	limit      int  // the maximum number of holders; 0: one, or any number

	waiterSince time.Time // leases: since when there is a waiter
	taken       time.Time // leases: when it was last acquired, by any holder
	forgotten   bool      // the holder is dead, and its lease row is deleted; see settled
	sqllock.Holder
}

// called returns the name of the lock, or the server's name if only that is known.
func (e entry) called() string {
	if e.name == "" {
		return e.serverName
	}
	return e.name
}

// wanted reports whether the lock has a waiter.
func (e entry) wanted() bool { return e.Waiters > 0 || !e.waiterSince.IsZero() }

// soon reports whether a lease expires soon, because its renewal is overdue. A renewal is due after a third of the TTL.
func (e entry) soon(now time.Time) bool {
	return e.state == stateHeld && e.TTL > 0 && e.Until.Sub(now) < e.TTL/2
}

// leaseEntries returns one entry for each holder, and one for each name without a holder.
func leaseEntries(infos []leasetable.Info) []entry {
	var entries []entry
	for _, info := range infos {
		e := entry{name: info.Name, kind: database.KindLease, state: stateFree, waiterSince: info.WaiterSince, taken: info.Taken, Holder: info.Holder}
		switch {
		case info.Expired:
			e.state = stateExpired
		case info.Held && info.Holder.Host == "" && info.Holder.PID == 0:
			e.state = stateKept
		case info.Held:
			e.state = stateHeld
		}
		if e.Token == 0 {
			e.Token = info.Token
		}
		if !info.Shared {
			entries = append(entries, e)
			continue
		}
		for _, holder := range info.Holders {
			e.shared, e.limit, e.Holder = info.Limit == 0, info.Limit, holder
			entries = append(entries, e)
		}
	}
	return entries
}

// sessionEntries returns the session locks as entries.
func sessionEntries(all []database.SessionLock) (entries []entry) {
	for _, l := range all {
		entries = append(entries, entry{
			name: l.Name, serverName: l.ServerName, kind: database.KindSession, state: stateHeld, shared: l.Shared, Holder: l.Holder,
		})
	}
	return entries
}

// holdersOf lists the holders of the session lock that has this name on the server.
func holdersOf(ctx context.Context, l database.SessionLocker, serverName string) ([]entry, error) {
	all, err := l.Holders(ctx)
	return slices.DeleteFunc(sessionEntries(all), func(e entry) bool { return e.serverName != serverName }), err
}

// named returns the session locks whose name, if known, or whose server name begins with prefix, and the lock whose
// name is prefix itself.
func named(ctx context.Context, db *database.Database, entries []entry, prefix string) ([]entry, error) {
	if prefix == "" || len(entries) == 0 {
		return entries, nil
	}
	serverName, err := db.ServerNames(ctx)
	if err != nil {
		return nil, err
	}
	exact := serverName(prefix)
	var picked []entry
	for _, e := range entries {
		if e.serverName == exact {
			e.name = prefix
		}
		if e.name != "" && strings.HasPrefix(e.name, prefix) || strings.HasPrefix(e.serverName, prefix) {
			picked = append(picked, e)
		}
	}
	return picked, nil
}
