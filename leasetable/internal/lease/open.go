package lease

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// leaseFor returns the lease for locks with this TTL, with a claim begun on it, or a dedicated one, which takes no other
// claims. If there is none yet, it commits a new lease row, and callers that come meanwhile share the outcome. If the caller
// leaves, that goes on: connecting may take longer than any caller waits, and all renewals use the connection.
func (k *Keeper) leaseFor(ctx context.Context, ttl time.Duration, dedicated bool) (*Lease, error) {
	leaveQueue := func(error) {}
	if !dedicated {
		if ls := k.current(ttl); ls != nil {
			return ls, nil
		}
		if err := k.opening.Wait(ctx, ttl); err != nil {
			return nil, err
		}
		leaveQueue = func(err error) { k.opening.Done(ttl, err) }
		if ls := k.current(ttl); ls != nil { // opened while we waited
			leaveQueue(nil)
			return ls, nil
		}
	}
	ls, left, err := OrLeave(ctx, k.Start, func() (ls *Lease, err error) {
		err = dberr.ErrUnreturned
		defer func() { leaveQueue(err) }()
		return k.open(bound.WithValuesOf(k.Closing, ctx), ttl, dedicated)
	}, func(ls *Lease, err error) {
		if err == nil {
			ls.endClaim()
		}
	})
	if left {
		err = fmt.Errorf("%w: %w", store.ErrNoLease, err)
	}
	return ls, err
}

// open commits a lease row and returns the lease, with a claim begun on it (I7).
func (k *Keeper) open(ctx context.Context, ttl time.Duration, dedicated bool) (*Lease, error) {
	ls := &Lease{
		keeper: k,
		store:  k.Store,
		ID:     make([]byte, 16),
		TTL:    ttl,
		wake:   make(chan struct{}, 1),
		ended:  make(chan struct{}),
		locks:  make(map[*Held]struct{}),
		claims: 1,

		permits:   make(map[heldKey]*Held),
		retired:   dedicated, // it takes no other claims
		dedicated: dedicated,
	}
	ls.Orphans.Lease, ls.verification.Lease, ls.Renewals.Lease = ls, ls, ls
	_, _ = rand.Read(ls.ID) // never fails, according to its documentation
	// A confirmation after that time would come after the deadline.
	sent, err := k.Store.OpenLease(ctx, k.leaseRow(ls.ID, ttl), ttl-ls.margin())
	if err != nil {
		return nil, err
	}
	k.noteRenewal(sent, min(ttl-ls.margin(), dberr.AttemptTimeout))
	ls.Renewals.began, ls.Renewals.first, ls.Renewals.turn = clock.Plain(sent), sent.Add(interval(ttl)), make(chan struct{}, 1)
	if err := k.startLease(ls, sent); err != nil {
		return nil, err
	}
	return ls, nil
}

// leaseRow returns a new lease row of k.
func (k *Keeper) leaseRow(id []byte, ttl time.Duration) store.LeaseRow {
	row := k.row
	row.ID, row.TTL = id, ttl
	return row
}

// current returns the lease in use for ttl, with a claim begun on it, or nil.
func (k *Keeper) current(ttl time.Duration) *Lease {
	k.mu.Lock()
	ls := k.leases[ttl]
	k.mu.Unlock()
	if ls == nil || !ls.beginClaim() {
		return nil
	}
	return ls
}

// startLease starts the timers and the renewals of a lease whose row was sent at the given time. It returns ErrClosed
// if the Locker is closed. The first deadline counts from then (I3).
func (k *Keeper) startLease(ls *Lease, sent time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if err := k.Start(ls.Renewals.loop); err != nil { // nothing refers to the row; it expires
		return err
	}
	ls.used = clock.Plain(sent)
	ls.trusted = sent.Add(ls.TTL - ls.margin())
	ls.deadline, ls.warning = clock.AfterFunc(ls.trusted, ls.expire), time.AfterFunc(ls.TTL, ls.warn)
	ls.setTimers()
	ls.verification.done.connection = k.Store.RenewalConnection()
	ls.verification.latest = ls.verification.done
	if !ls.retired {
		k.leases[ls.TTL] = ls
	}
	k.all[ls] = struct{}{}
	return nil
}

// forget removes a lease from the current ones when it retires, and from all when it has ended.
func (k *Keeper) forget(ls *Lease, ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[ls.TTL] == ls {
		delete(k.leases, ls.TTL)
	}
	if ended {
		delete(k.all, ls)
	}
}
