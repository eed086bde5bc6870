package memory

import (
	"context"
	"slices"
	"time"
)

// mode is how a row is locked.
type mode int

const (
	shared mode = iota
	exclusive
)

// rowKey names what a transaction can lock: the row of a name, a lease or a permit, or the whole file.
type rowKey struct {
	table string
	key   string
	token int64
}

func nameKey(name string) rowKey      { return rowKey{table: "lock", key: name} }
func leaseKey(id string) rowKey       { return rowKey{table: "lease", key: id} }
func permitRowKey(k permitKey) rowKey { return rowKey{"permit", k.name, k.token} }

var wholeFile = rowKey{table: "file"}

// rowLock is the lock of one row, with the transactions that wait for it, first come first served.
type rowLock struct {
	holders map[*Tx]mode
	queue   []*rowWait
}

type rowWait struct {
	tx    *Tx
	mode  mode
	ended chan error // has room for one: nil when the lock was granted
}

// stop ends a wait.
func (w *rowWait) stop() {
	select {
	case w.ended <- errRestarted:
	default: // it was granted just now
	}
}

// lock locks a row for the transaction, and waits for it if it has to. The caller holds the server's mu, which is
// unlocked meanwhile.
func (t *Tx) lock(ctx context.Context, key rowKey, m mode) error {
	if t.tryLock(key, m) {
		return nil
	}
	s := t.server
	l := s.rowLocks[key]
	w := &rowWait{t, m, make(chan error, 1)}
	l.queue = append(l.queue, w)
	t.waiting = w
	s.waits++
	s.mu.Unlock()
	var late <-chan time.Time
	if s.kind.LockWait > 0 {
		timer := time.NewTimer(s.kind.LockWait)
		defer timer.Stop()
		late = timer.C
	}
	var err error
	select {
	case err = <-w.ended:
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = errConflict
	}
	s.mu.Lock()
	s.waits--
	t.waiting = nil
	if t.dead && err == nil {
		err = errRestarted
	}
	if err != nil {
		l.queue = slices.DeleteFunc(l.queue, func(other *rowWait) bool { return other == w })
		s.grant(key) // others may have queued behind w
	}
	return err
}

// tryLock locks a row if that is possible at once. The caller holds the server's mu.
func (t *Tx) tryLock(key rowKey, m mode) bool {
	s := t.server
	l := s.rowLocks[key]
	if l == nil {
		l = &rowLock{holders: make(map[*Tx]mode)}
		s.rowLocks[key] = l
	}
	held, has := l.holders[t]
	if has && held >= m {
		return true
	}
	if !l.compatible(t, m) || !has && len(l.queue) > 0 {
		return false
	}
	l.holders[t] = m
	t.locked = append(t.locked, key)
	return true
}

// compatible reports whether t can have the lock beside its other holders.
func (l *rowLock) compatible(t *Tx, m mode) bool {
	for other, held := range l.holders {
		if other != t && (m == exclusive || held == exclusive) {
			return false
		}
	}
	return true
}

// grant gives the lock of a row to the first that wait for it. The caller holds mu.
func (s *Server) grant(key rowKey) {
	l := s.rowLocks[key]
	if l == nil {
		return
	}
	for len(l.queue) > 0 && l.compatible(l.queue[0].tx, l.queue[0].mode) {
		w := l.queue[0]
		l.queue = l.queue[1:]
		l.holders[w.tx] = w.mode
		w.tx.locked = append(w.tx.locked, key)
		w.ended <- nil
	}
	if len(l.holders) == 0 && len(l.queue) == 0 {
		delete(s.rowLocks, key)
	}
}

// unlock gives all locks of the transaction back. The caller holds the server's mu.
func (t *Tx) unlock() {
	for _, key := range t.locked {
		if l := t.server.rowLocks[key]; l != nil {
			delete(l.holders, t)
		}
	}
	for _, key := range t.locked {
		t.server.grant(key)
	}
	t.locked = nil
}
