package memory

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Store is what one Locker sees of a server.
type Store struct {
	reads
	leases
	acquisitions
	releases
	holds
	permits
	waits
	server
}

var _ store.Store = (*Store)(nil)

// client is one Locker's access to a server.
type client struct {
	*Server
	renewals atomic.Int64 // the number of the connection for renewals
}

type (
	reads        struct{ *client }
	leases       struct{ *client }
	acquisitions struct{ *client }
	releases     struct{ *client }
	holds        struct{ *client }
	permits      struct{ *client }
	waits        struct{ *client }
	server       struct{ *client }
)

// Store returns the store of another Locker.
func (s *Server) Store() *Store {
	c := &client{Server: s}
	c.renewals.Store(1)
	return &Store{reads{c}, leases{c}, acquisitions{c}, releases{c}, holds{c}, permits{c}, waits{c}, server{c}}
}

// Reconnect has renewals use another connection.
func (s *Store) Reconnect() { s.server.renewals.Add(1) }

// run runs a statement that changes rows. f is called with mu held.
func (c *client) run(ctx context.Context, f func(t *Tx) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.begin()
	defer t.end()
	if err := ctx.Err(); err != nil {
		return classify(err)
	}
	if c.kind.OneWriter {
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

// System implements store.Server.
func (s server) System() string { return s.kind.Name }

// OneWriter implements store.Server.
func (s server) OneWriter() bool { return s.kind.OneWriter }

// HasTurns implements store.Server.
func (s server) HasTurns() bool { return s.kind.Turns }

// MaxTurns implements store.Server.
func (s server) MaxTurns() int { return conn.DefaultLimit.Turns() }

// mostWaits is how many statements may wait for rows before a handoff, which may wait, is not tried.
const mostWaits = 3

// Saturated implements store.Server.
func (s server) Saturated() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits >= mostWaits
}

// Limited implements store.Server.
func (s server) Limited() bool { return false }

// Lend implements store.Server.
func (s server) Lend(func() conn.RenewalNeeds, func()) {}

// PrepareRenewal implements store.Server.
func (s server) PrepareRenewal() {}

// RenewalConnection implements store.Server.
func (s server) RenewalConnection() int64 { return s.renewals.Load() }

// ConnectingTook implements store.Server.
func (s server) ConnectingTook() time.Duration { return 0 }

// DropIdle implements store.Server.
func (s server) DropIdle() {}

// GiveBack implements store.Server.
func (s server) GiveBack() {}

// Close implements store.Server.
func (s server) Close() error { return nil }
