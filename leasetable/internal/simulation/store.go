package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// faulty is the store that a Locker sees: each call has its fault.
type faulty struct {
	*process
	store.Server
}

var _ store.Store = faulty{}

func (p *process) faulty() store.Store { return faulty{p, p.store} }

// id is a lease's id for people: leases are numbered in the order in which they are opened.
func (p *process) id(lease []byte) string { return p.leaseName(string(lease)) }

// Read implements store.Store.
func (s faulty) Read(ctx context.Context, name string) (store.State, error) {
	return call(ctx, s.process, "read", name, func(ctx context.Context) (store.State, error) { return s.store.Read(ctx, name) })
}

// ReadPermits implements store.Store.
func (s faulty) ReadPermits(ctx context.Context, name string) (store.State, error) {
	return call(ctx, s.process, "read permits", name, func(ctx context.Context) (store.State, error) { return s.store.ReadPermits(ctx, name) })
}

// List implements store.Store.
func (s faulty) List(ctx context.Context, from, last string, limit int) ([]store.State, error) {
	return call(ctx, s.process, "list", from, func(ctx context.Context) ([]store.State, error) { return s.store.List(ctx, from, last, limit) })
}

// ListPermits implements store.Store.
func (s faulty) ListPermits(ctx context.Context, from, last []byte) ([]store.State, error) {
	return call(ctx, s.process, "list permits", string(from), func(ctx context.Context) ([]store.State, error) { return s.store.ListPermits(ctx, from, last) })
}

// StillHeld implements store.Store.
func (s faulty) StillHeld(ctx context.Context, id []byte, names []string) ([]store.State, error) {
	return call(ctx, s.process, "still held", s.id(id), func(ctx context.Context) ([]store.State, error) { return s.store.StillHeld(ctx, id, names) })
}

// NamesOf implements store.Store. Its pages are short.
func (s faulty) NamesOf(ctx context.Context, id []byte, after string, _ int) ([]store.State, error) {
	return call(ctx, s.process, "names of", s.id(id), func(ctx context.Context) ([]store.State, error) { return s.store.NamesOf(ctx, id, after, 2) })
}

// Diagnose implements store.Store.
func (s faulty) Diagnose(_ context.Context, err error) error { return err }

// OpenLease implements store.Store.
func (s faulty) OpenLease(ctx context.Context, l store.LeaseRow, within time.Duration) (sent time.Time, err error) {
	s.noteTTL(l.TTL)
	sent = clock.Now()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err = call(ctx, s.process, "open lease", s.id(l.ID), func(ctx context.Context) (time.Time, error) { return s.store.OpenLease(ctx, l, within) })
	if err != nil {
		return sent, fmt.Errorf("%w: %w", store.ErrNoLease, err)
	}
	return sent, nil
}

type renewal struct {
	there   bool
	changes int64
}

// Renew implements store.Store.
func (s faulty) Renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	r, err := call(ctx, s.process, "renew", s.id(id), func(ctx context.Context) (r renewal, err error) {
		r.there, r.changes, err = s.store.Renew(ctx, id)
		return r, err
	})
	return r.there, r.changes, err
}

type nothing struct{}

// EndLease implements store.Store.
func (s faulty) EndLease(ctx context.Context, id []byte) error {
	_, err := call(ctx, s.process, "end lease", s.id(id), func(ctx context.Context) (nothing, error) { return nothing{}, s.store.EndLease(ctx, id) })
	return err
}

// Expire implements store.Store.
func (s faulty) Expire(ctx context.Context, id []byte) (bool, error) {
	return call(ctx, s.process, "expire", s.id(id), func(ctx context.Context) (bool, error) { return s.store.Expire(ctx, id) })
}

// ExpireUnchanged implements store.Store.
func (s faulty) ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (bool, error) {
	return call(ctx, s.process, "expire unchanged", s.id(id), func(ctx context.Context) (bool, error) {
		return s.store.ExpireUnchanged(ctx, id, renewals)
	})
}

// Expired implements store.Store.
func (s faulty) Expired(ctx context.Context, ago time.Duration, limit int) ([]store.State, error) {
	return call(ctx, s.process, "expired", "", func(ctx context.Context) ([]store.State, error) { return s.store.Expired(ctx, ago, limit) })
}

// NoteWaiter implements store.Store.
func (s faulty) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (bool, error) {
	return call(ctx, s.process, "note waiter", name, func(ctx context.Context) (bool, error) { return s.store.NoteWaiter(ctx, name, since, within) })
}

// RemoveWaiter implements store.Store.
func (s faulty) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := call(ctx, s.process, "remove waiter", name, func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.RemoveWaiter(ctx, name, since)
	})
	return err
}

// NoteExclusiveWaiter implements store.Store.
func (s faulty) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := call(ctx, s.process, "note exclusive waiter", name, func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.NoteExclusiveWaiter(ctx, name, us)
	})
	return err
}

// OpenTurn implements store.Store.
func (s faulty) OpenTurn(ctx context.Context) (store.Turn, error) {
	t, err := call(ctx, s.process, "open turn", "", func(ctx context.Context) (store.Turn, error) { return s.store.OpenTurn(ctx) })
	if err != nil {
		return nil, err
	}
	return faultyTurn{s.process, t}, nil
}

// faultyTurn is a turn whose calls have faults.
type faultyTurn struct {
	p *process
	store.Turn
}

// Try implements store.Turn.
func (t faultyTurn) Try(ctx context.Context, name string) (bool, error) {
	return call(ctx, t.p, "try turn", name, func(ctx context.Context) (bool, error) { return t.Turn.Try(ctx, name) })
}

// Wait implements store.Turn.
func (t faultyTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	return call(ctx, t.p, "wait for turn", name, func(ctx context.Context) (bool, error) { return t.Turn.Wait(ctx, name, d) })
}

// Leave implements store.Turn.
func (t faultyTurn) Leave(ctx context.Context) error {
	_, err := call(ctx, t.p, "leave turn", "", func(ctx context.Context) (nothing, error) { return nothing{}, t.Turn.Leave(ctx) })
	return err
}
