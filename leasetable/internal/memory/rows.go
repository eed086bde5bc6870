package memory

import (
	"maps"
	"slices"
	"strings"
)

// lockRow is a row of the table of names. Times are in microseconds since 1970, by the server's clock; 0 stands for
// NULL.
type lockRow struct {
	token                    int64
	first                    int64  // of the tokens that were granted with token: a handoff gets several
	lease                    string // "": no lease holds the name
	acquired, released       int64
	holdUntil                int64
	waiterUntil, waiterSince int64
	exclusiveUntil           int64
	limit                    int64
	limited                  bool // limit is not NULL
	metadata                 []byte
}

// granted reports whether token is one of those that were granted last.
func (r lockRow) granted(token int64) bool { return r.first <= token && token <= r.token }

// leaseRow is a row of the table of leases.
type leaseRow struct {
	owner, host       string
	pid               int
	ttl               int64
	renewals, changes int64
	expires           int64
}

// permitKey is the primary key of the table of permits.
type permitKey struct {
	name  string
	token int64
}

type permitRow struct {
	lease    string
	limit    int64
	acquired int64
}

// tables are the committed rows. A transaction changes them when it has all its locks.
type tables struct {
	locks   map[string]lockRow
	leases  map[string]leaseRow
	permits map[permitKey]permitRow
	data    map[string]int64 // a table of the application
}

func newTables() tables {
	return tables{
		locks:   make(map[string]lockRow),
		leases:  make(map[string]leaseRow),
		permits: make(map[permitKey]permitRow),
		data:    make(map[string]int64),
	}
}

// permitsOf returns the keys of the permits of a name, by token.
func (t *tables) permitsOf(name string) (keys []permitKey) {
	for k := range t.permits {
		if k.name == name {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, comparePermits)
	return keys
}

// permitsBetween returns the keys of the permits of a range of names, by name and token.
func (t *tables) permitsBetween(from, last string) (keys []permitKey) {
	for k := range t.permits {
		if k.name >= from && k.name <= last {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, comparePermits)
	return keys
}

// hasPermit reports whether a lease has a permit.
func (t *tables) hasPermit(k permitKey, lease []byte) bool {
	p, there := t.permits[k]
	return there && p.lease == string(lease)
}

// hasLease reports whether a lease has a row.
func (t *tables) hasLease(id []byte) bool {
	_, there := t.leases[string(id)]
	return there
}

func comparePermits(a, b permitKey) int {
	if c := strings.Compare(a.name, b.name); c != 0 {
		return c
	}
	return int(a.token - b.token)
}

// names returns the names that have a row, in the order of their bytes.
func (t *tables) names() []string { return slices.Sorted(maps.Keys(t.locks)) }

// free reports whether a plain acquisition takes the name.
func (r lockRow) free(now int64) bool {
	return r.lease == "" && !r.limited && r.holdUntil <= now
}

// mine reports whether the name is held by the lease with the token.
func (r lockRow) mine(lease string, token int64) bool {
	return r.lease == lease && lease != "" && r.token == token
}

// hasWaiter reports whether a waiter is noted.
func (r lockRow) hasWaiter(now int64) bool { return r.waiterUntil > now }

// take gives the name to a lease with the next token. The waiter that waits since then is noted no more.
func (r *lockRow) take(now int64, lease, metadata []byte, since int64) {
	r.token++
	r.lease = string(lease)
	r.acquired, r.released = now, 0
	r.metadata = metadata
	if since != 0 && r.waiterSince == since {
		r.waiterUntil = 0
	}
}

// release frees the name. It is kept for the minimum hold.
func (r *lockRow) release(now, minHold int64) {
	r.lease = ""
	r.released, r.holdUntil = now, 0
	if minHold != 0 {
		r.holdUntil = r.acquired + minHold
	}
}
