package simulation

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// leaseSteps are the steps of store.LeaseSteps, each with its fault.
type leaseSteps struct{ *process }

// OpenLease implements store.Store.
func (s leaseSteps) OpenLease(ctx context.Context, l store.LeaseRow, within time.Duration) (sent time.Time, err error) {
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
func (s leaseSteps) Renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	r, err := call(ctx, s.process, "renew", s.id(id), func(ctx context.Context) (r renewal, err error) {
		r.there, r.changes, err = s.store.Renew(ctx, id)
		return r, err
	})
	return r.there, r.changes, err
}

// EndLease implements store.Store.
func (s leaseSteps) EndLease(ctx context.Context, id []byte) error {
	_, err := call(ctx, s.process, "end lease", s.id(id), func(ctx context.Context) (nothing, error) { return nothing{}, s.store.EndLease(ctx, id) })
	return err
}

// Expire implements store.Store.
func (s leaseSteps) Expire(ctx context.Context, id []byte) (bool, error) {
	return call(ctx, s.process, "expire", s.id(id), func(ctx context.Context) (bool, error) { return s.store.Expire(ctx, id) })
}

// ExpireUnchanged implements store.Store.
func (s leaseSteps) ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (bool, error) {
	return call(ctx, s.process, "expire unchanged", s.id(id), func(ctx context.Context) (bool, error) {
		return s.store.ExpireUnchanged(ctx, id, renewals)
	})
}

// Expired implements store.Store.
func (s leaseSteps) Expired(ctx context.Context, ago time.Duration, limit int) ([]store.State, error) {
	return call(ctx, s.process, "expired", "", func(ctx context.Context) ([]store.State, error) { return s.store.Expired(ctx, ago, limit) })
}
