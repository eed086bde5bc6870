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
	stateExpired = "expired" // its holder is dead, and nobody has followed
	stateFree    = "free"
)

// entry is a lock and one of those who hold it, or the last one who did.
type entry struct {
	name       string // empty if only serverName is known
	serverName string // what the server calls a session lock
	kind       string
	state      string
	shared     bool // any number can hold it
	limit      int  // so many can hold it; 0: one, or any number

	wantedSince time.Time // since when somebody waits for it; of leases
	taken       time.Time // when it was last taken, by whomever; of leases
	forgotten   bool      // the holder is dead, and the database knows of it no more; see settled
	sqllock.Holder
}

// called is the name of the lock, or what the server calls it.
func (e entry) called() string {
	if e.name == "" {
		return e.serverName
	}
	return e.name
}

// wanted reports whether anybody waits for the lock.
func (e entry) wanted() bool { return e.Waiters > 0 || !e.wantedSince.IsZero() }

// soon reports whether a lease ends soon: it should have been renewed by now, which is due after a
// third of its TTL.
func (e entry) soon(now time.Time) bool {
	return e.state == stateHeld && e.TTL > 0 && e.Until.Sub(now) < e.TTL/2
}

// leaseEntries has an entry for every holder, and one for a name that has none.
func leaseEntries(infos []leasetable.Info) []entry {
	var entries []entry
	for _, info := range infos {
		e := entry{name: info.Name, kind: kindLease, state: stateFree, wantedSince: info.WantedSince, taken: info.Taken, Holder: info.Holder}
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

// sessionEntries lists the session locks of the server, or of the database on PostgreSQL.
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

// holdersOf lists who hold the session lock that the server calls so.
func holdersOf(ctx context.Context, l sessionLocker, serverName string) ([]entry, error) {
	entries, err := sessionEntries(ctx, l)
	return slices.DeleteFunc(entries, func(e entry) bool { return e.serverName != serverName }), err
}

// keyName is what the key of an advisory lock is called here.
func keyName(key int64, pair bool) string {
	if pair {
		return fmt.Sprintf("key %d,%d", int32(key>>32), int32(key)) // the two halves
	}
	return fmt.Sprintf("key %d", key)
}

// named picks the session locks whose names begin with prefix, if these are known, or their names on the server, and
// that which is called prefix itself.
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

// now asks for the time by the clock that holders are recorded with: this machine's may differ.
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

// notShown reports whether err says that a server does not have session locks, or does not show
// them, or not to this user: then there is still something to say of leases.
func notShown(err error) bool {
	const tableAccessDenied = 1142
	var answer *gomysql.MySQLError
	return errors.Is(err, sqllock.ErrUnsupported) || errors.Is(err, sqllock.ErrRefused) ||
		errors.As(err, &answer) && answer.Number == tableAccessDenied
}
