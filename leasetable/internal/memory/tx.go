package memory

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Tx is a transaction. One of the application locks rows, and writes the application's data when it commits. A statement
// of the protocol is a transaction of its own.
type Tx struct {
	server *Server
	asOf   int64 // when the statement began

	// Guarded by the server's mu:
	locked  []rowKey
	waiting *rowWait
	undo    []func()
	async   bool // the commit does not wait for the disk
	dead    bool // it has ended, or the server has restarted
	read    bool // on a server with one writer: it has read
	version int64
	writes  map[string]int64
}

// commit is one transaction in the log.
type commit struct {
	at    time.Time
	async bool
	undo  []func()
}

// Begin begins a transaction of the application.
func (s *Server) Begin() *Tx {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begin()
}

// begin begins a transaction. The caller holds mu.
func (s *Server) begin() *Tx {
	t := &Tx{server: s, asOf: s.now()}
	s.open[t] = struct{}{}
	return t
}

// end ends a transaction. What it has changed is committed. The caller holds the server's mu.
func (t *Tx) end() {
	s := t.server
	if t.dead {
		return
	}
	t.dead = true
	if t.waiting != nil { // a statement of the same transaction, whose client has left
		t.waiting.stop()
	}
	if len(t.undo) > 0 {
		s.version++
		s.log = append(s.log, commit{time.Now(), t.async, t.undo})
	}
	delete(s.open, t)
	t.unlock()
}

// now is the time that the statement goes by: when it began, or on PostgreSQL the current time. The caller holds mu.
func (t *Tx) now() int64 {
	if t.server.kind.LocksFirst {
		return t.asOf
	}
	return t.server.now()
}

// set changes a row, and notes how to undo that. The caller holds the server's mu.
func set[K comparable, V any](t *Tx, rows map[K]V, key K, value V) {
	before, there := rows[key]
	rows[key] = value
	t.undo = append(t.undo, func() { restore(rows, key, before, there) })
}

// remove deletes a row, and notes how to undo that. The caller holds the server's mu.
func remove[K comparable, V any](t *Tx, rows map[K]V, key K) {
	before, there := rows[key]
	delete(rows, key)
	t.undo = append(t.undo, func() { restore(rows, key, before, there) })
}

func restore[K comparable, V any](rows map[K]V, key K, before V, there bool) {
	if there {
		rows[key] = before
	} else {
		delete(rows, key)
	}
}

// setName changes the row of a name.
func (t *Tx) setName(name string, after lockRow) {
	s := t.server
	before := s.locks[name]
	if after.token > before.token {
		after.first = before.token + 1
	}
	set(t, s.locks, name, after)
	if s.watch == nil {
		return
	}
	// Two can acquire a name at the same instant, in virtual time.
	acquired, lease := after.acquired != before.acquired || after.lease != before.lease, s.leases[after.lease]
	risen := after.token > before.token && after.lease != ""
	s.watch(Change{
		Name: name, Before: before.token, After: after.token, Lease: after.lease,
		Both:    after.lease != "" && (after.limited || len(s.permitsOf(name)) > 0),
		Granted: risen && acquired, Bumped: risen && !acquired && lease.expires > s.now(),
		Freed: before.lease != "" && after.lease == "",
	})
}

// tellPermit reports that a permit was acquired. The caller holds mu.
func (s *Server) tellPermit(k permitKey) {
	if s.watch == nil {
		return
	}
	c := Change{Name: k.name, Before: k.token - 1, After: k.token, Granted: true}
	for _, other := range s.permitsOf(k.name) {
		c.Permits++
		if limit := s.permits[other].limit; limit > 0 && (c.Limit == 0 || limit < c.Limit) {
			c.Limit = limit
		}
	}
	s.watch(c)
}

// tellData reports that the application wrote a number. The caller holds mu.
func (s *Server) tellData(name string, before, after int64) {
	if s.watch == nil {
		return
	}
	row := s.locks[name]
	_, permit := s.permits[permitKey{name, after}]
	c := Change{Name: name, Before: before, After: after, Data: true, Held: permit || row.lease != "" && row.granted(after)}
	if permit {
		c.Permits = 1
	}
	s.watch(c)
}

// The queries of a guard. QueryRow knows no others.
const (
	guardName   = "guard"
	guardPermit = "guard permit"
)

// Row is the result of a query.
type Row struct {
	found bool
	err   error
}

// Scan sets an *int to 1 if there is a row.
func (r Row) Scan(to ...any) error {
	switch {
	case r.err != nil:
		return r.err
	case !r.found:
		return sql.ErrNoRows
	}
	*to[0].(*int) = 1
	return nil
}

// QueryRow runs the query of a guard, which locks a row in share mode.
func (t *Tx) QueryRow(ctx context.Context, query string, args ...any) Row {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.dead {
		return Row{err: errRestarted}
	}
	name, lease, token := string(args[0].([]byte)), string(args[1].([]byte)), args[2].(int64)
	var there bool
	var found func() bool
	var key rowKey
	switch query {
	case guardName:
		_, there = s.locks[name]
		key, found = nameKey(name), func() bool { return s.locks[name].mine(lease, token) }
	case guardPermit:
		k := permitKey{name, token}
		_, there = s.permits[k]
		key, found = permitRowKey(k), func() bool { return s.permits[k].lease == lease }
	default:
		return Row{err: fmt.Errorf("%q is no query of a guard", query)}
	}
	if s.kind.OneWriter {
		if !t.read {
			t.read, t.version = true, s.version
		}
		return Row{found: found()}
	}
	if !there || !s.kind.LocksFirst && !found() {
		return Row{}
	}
	if err := t.lock(ctx, key, shared); err != nil {
		return Row{err: err}
	}
	return Row{found: found()}
}

// Lock locks the row of a name for the transaction, if there is one.
func (t *Tx) Lock(ctx context.Context, name string) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.dead:
		return errRestarted
	case s.kind.OneWriter:
		return t.lockFile(ctx)
	}
	if _, there := s.locks[name]; !there {
		return nil
	}
	return t.lock(ctx, nameKey(name), exclusive)
}

// Write writes a number under a name of the application.
func (t *Tx) Write(ctx context.Context, name string, number int64) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.dead {
		return errRestarted
	}
	if s.kind.OneWriter {
		if err := t.lockFile(ctx); err != nil {
			return err
		}
	}
	if t.writes == nil {
		t.writes = make(map[string]int64)
	}
	t.writes[name] = number
	return nil
}

// lockFile locks the file of a server with one writer. If somebody has written since the transaction has read, it cannot
// write any more. The caller holds the server's mu.
func (t *Tx) lockFile(ctx context.Context) error {
	if err := t.lock(ctx, wholeFile, exclusive); err != nil {
		return err
	}
	if t.read && t.version != t.server.version {
		return errConflict
	}
	return nil
}

// Commit commits the transaction.
func (t *Tx) Commit() error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.dead {
		return errRestarted
	}
	for name, number := range t.writes {
		before := s.data[name]
		set(t, s.data, name, number)
		s.tellData(name, before, number)
	}
	t.end()
	return nil
}

// Rollback ends the transaction without its writes. After Commit it does nothing.
func (t *Tx) Rollback(context.Context) error {
	s := t.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.open[t]; open {
		t.end() // nothing was changed yet
	}
	return nil
}
