package memory

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// leaseSteps are the steps of store.LeaseSteps.
type leaseSteps struct{ *Server }

// OpenLease implements store.Store.
func (s leaseSteps) OpenLease(ctx context.Context, l store.LeaseRow, _ time.Duration) (sent time.Time, err error) {
	sent = clock.Now()
	err = s.run(ctx, func(t *Tx) error {
		us := l.TTL.Microseconds()
		set(t, s.leases, string(l.ID), leaseRow{owner: l.Owner, host: l.Host, pid: os.Getpid(), ttl: us, expires: t.now() + us})
		return nil
	})
	if err != nil {
		return sent, fmt.Errorf("%w: %w", store.ErrNoLease, err)
	}
	return sent, nil
}

// Renew implements store.Store.
func (s leaseSteps) Renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	err = s.onLease(ctx, id, func(t *Tx, l leaseRow) bool { return l.expires > t.now() }, func(t *Tx, l leaseRow) {
		l.renewals++
		l.expires = t.now() + l.ttl
		set(t, s.leases, string(id), l)
		there, changes = true, l.changes
	})
	return there, changes, err
}

// onLease runs f on the row of a lease if there is one that meets a condition.
func (s leaseSteps) onLease(ctx context.Context, id []byte, meets func(*Tx, leaseRow) bool, f func(*Tx, leaseRow)) error {
	return s.run(ctx, func(t *Tx) error {
		l, there := s.leases[string(id)]
		if !there || !s.kind.LocksFirst && !meets(t, l) {
			return nil
		}
		if err := t.lockRow(ctx, leaseKey(string(id))); err != nil {
			return err
		}
		if l, there = s.leases[string(id)]; there && meets(t, l) {
			f(t, l)
		}
		return nil
	})
}

// end deletes a lease row if it meets a condition, and reports whether it did.
func (s leaseSteps) end(ctx context.Context, id []byte, meets func(*Tx, leaseRow) bool) (ended bool, err error) {
	err = s.onLease(ctx, id, meets, func(t *Tx, _ leaseRow) {
		remove(t, s.leases, string(id))
		ended = true
	})
	return ended, err
}

// EndLease implements store.Store.
func (s leaseSteps) EndLease(ctx context.Context, id []byte) error {
	_, err := s.end(ctx, id, func(*Tx, leaseRow) bool { return true })
	return err
}

// Expire implements store.Store.
func (s leaseSteps) Expire(ctx context.Context, id []byte) (bool, error) {
	return s.end(ctx, id, func(t *Tx, l leaseRow) bool { return l.expires <= t.now() })
}

// ExpireUnchanged implements store.Store.
func (s leaseSteps) ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (bool, error) {
	return s.end(ctx, id, func(_ *Tx, l leaseRow) bool { return l.renewals == renewals })
}

// Expired implements store.Store.
func (s leaseSteps) Expired(ctx context.Context, ago time.Duration, limit int) (all []store.State, err error) {
	err = s.run(ctx, func(t *Tx) error {
		for id, l := range s.leases {
			if l.expires <= t.now()-max(ago, 0).Microseconds() {
				all = append(all, store.State{LeaseID: []byte(id)})
			}
		}
		// Ids are random. A seed has to end the leases in the same order again.
		slices.SortFunc(all, func(a, b store.State) int {
			x, y := s.leases[string(a.LeaseID)], s.leases[string(b.LeaseID)]
			return cmp.Or(cmp.Compare(x.expires, y.expires), cmp.Compare(x.owner, y.owner), cmp.Compare(x.ttl, y.ttl))
		})
		return nil
	})
	return all[:min(len(all), limit)], err
}
