package memory

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Store is what one Locker sees of a server. It has the steps by what they do, like store.Database.
type Store struct {
	*Server
	readSteps
	leaseSteps
	acquireSteps
	releaseSteps
	batchSteps
	holdSteps
	permitSteps
	waitSteps
	serverFacts
}

var _ store.Store = (*Store)(nil)

// Store returns the store of another Locker.
func (s *Server) Store() *Store {
	of := &Store{
		Server:       s,
		readSteps:    readSteps{s},
		leaseSteps:   leaseSteps{s},
		acquireSteps: acquireSteps{s},
		releaseSteps: releaseSteps{s},
		batchSteps:   batchSteps{s},
		holdSteps:    holdSteps{s},
		permitSteps:  permitSteps{s},
		waitSteps:    waitSteps{s},
		serverFacts:  serverFacts{Server: s},
	}
	of.renewals.Store(1)
	return of
}

// run runs a statement that changes rows. f is called with mu held.
func (s *Server) run(ctx context.Context, f func(t *Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.begin()
	defer t.end()
	if err := ctx.Err(); err != nil {
		return classify(err)
	}
	if s.kind.OneWriter {
		if err := t.lockFile(ctx); err != nil {
			return classify(err)
		}
	}
	return classify(f(t))
}

// change changes the row of a name if it meets a condition, once it is not locked, and reports whether it did.
func (t *Tx) change(ctx context.Context, name string, meets func(lockRow) bool, f func(r *lockRow)) (bool, error) {
	s := t.server
	r, there := s.locks[name]
	if !there || !s.kind.LocksFirst && !meets(r) {
		return false, nil
	}
	return t.changeLocked(name, t.lockRow(ctx, nameKey(name)), meets, f)
}

// changeUnlocked is change, unless another transaction has locked the row.
func (t *Tx) changeUnlocked(name string, meets func(lockRow) bool, f func(r *lockRow)) bool {
	if !t.lockable(nameKey(name)) {
		return false
	}
	done, _ := t.changeLocked(name, nil, meets, f)
	return done
}

func (t *Tx) changeLocked(name string, err error, meets func(lockRow) bool, f func(r *lockRow)) (bool, error) {
	r, there := t.server.locks[name]
	if err != nil || !there || !meets(r) {
		return false, err
	}
	f(&r)
	t.setName(name, r)
	return true, nil
}

// lockRow locks a row, where rows are locked.
func (t *Tx) lockRow(ctx context.Context, key rowKey) error {
	if t.server.kind.OneWriter {
		return nil
	}
	return t.lock(ctx, key, exclusive)
}

// lockable locks a row unless it is locked by another transaction.
func (t *Tx) lockable(key rowKey) bool {
	return t.server.kind.OneWriter || t.tryLock(key, exclusive)
}
