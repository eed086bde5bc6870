package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
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
		e := entry{name: info.Name, kind: kindLease, state: stateFree, waiterSince: info.WaiterSince, taken: info.Taken, Holder: info.Holder}
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

// sessionEntries lists the session locks of the server, or on PostgreSQL those of the database.
func sessionEntries(ctx context.Context, l sessionLocker) ([]entry, error) {
	var entries []entry
	add := func(serverName string, shared bool, holder sqllock.Holder) {
		entries = append(entries, entry{serverName: serverName, kind: kindSession, state: stateHeld, shared: shared, Holder: holder})
	}
	switch l := l.(type) {
	case pgLocker:
		infos, err := l.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			for _, holder := range info.Holders {
				add(keyName(info.Key, info.Pair), info.Shared, holder)
			}
		}
	case mysqlLocker:
		infos, err := l.List(ctx)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			add(info.ServerName, false, info.Holder)
		}
	}
	return entries, nil
}

// holdersOf lists the holders of the session lock that has this name on the server.
func holdersOf(ctx context.Context, l sessionLocker, serverName string) ([]entry, error) {
	entries, err := sessionEntries(ctx, l)
	return slices.DeleteFunc(entries, func(e entry) bool { return e.serverName != serverName }), err
}

// keyName formats the key of an advisory lock.
func keyName(key int64, pair bool) string {
	if pair {
		return fmt.Sprintf("key %d,%d", int32(key>>32), int32(key)) // the two halves
	}
	return fmt.Sprintf("key %d", key)
}

// named returns the session locks whose name, if known, or whose server name begins with prefix, and the lock whose
// name is prefix itself.
func (db *database) named(ctx context.Context, entries []entry, prefix string) ([]entry, error) {
	if prefix == "" || len(entries) == 0 {
		return entries, nil
	}
	serverName, err := db.serverNames(ctx)
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

// now returns the time of the clock that records holders. This machine's clock may differ.
func (db *database) now(ctx context.Context) (time.Time, error) {
	query := "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	switch db.dialect {
	case schema.SQLite:
		return time.Now(), nil
	case schema.MySQL:
		query = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	var micros int64
	err := db.GetContext(ctx, &micros, query)
	return time.UnixMicro(micros), err
}

// notShown reports whether err means that the server has no session locks, or does not list them, or not for this user.
// Leases can still be listed then.
func notShown(err error) bool {
	const tableAccessDenied = 1142
	var answer *gomysql.MySQLError
	return errors.Is(err, sqllock.ErrUnsupported) || errors.Is(err, sqllock.ErrRefused) ||
		errors.As(err, &answer) && answer.Number == tableAccessDenied
}
