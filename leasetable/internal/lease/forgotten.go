package lease

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// freeForgotten frees the names that the lease holds and no lock here has: a crash or a failover of the database has
// forgotten their release (I23; see chapter 8 of docs/design.md). The lease is retired: when its last claim has ended, every
// lock on it is known. If the connection changes once more, the search begins anew.
func (v *verification) freeForgotten() {
	var connection int64
	var after string // the names up to here are done
	for pause := backoff.First; ; pause = min(2*pause, interval(v.TTL), dberr.AttemptTimeout) {
		v.mu.Lock()
		claims := v.claims
		if v.latest.connection != connection {
			connection, after = v.latest.connection, ""
		}
		v.mu.Unlock()
		search := func() error { return v.freeUnknown(&after) }
		if claims == 0 && v.keeper.survive(search) == nil && v.searchEnds(connection) {
			return
		}
		if !v.pause(pause) {
			return
		}
	}
}

// searchEnds ends the search, unless the connection has changed since it began.
func (v *verification) searchEnds(connection int64) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.searching = v.latest.connection != connection
	return !v.searching
}

// page is how many names one statement of freeUnknown looks at.
const page = 2000

// freeUnknown frees the names that the lease holds in the database but that no lock on it has (I23). It moves after on when
// it is done with a page, and rests for as long as that took: after a failover many processes do this at the same time.
func (v *verification) freeUnknown(after *string) error {
	for {
		began := time.Now()
		states, err := dberr.Value(v.keeper.Closing, dberr.Once, dberr.AttemptTimeout, func(ctx context.Context) ([]store.State, error) {
			return v.store.NamesOf(ctx, v.ID, *after, page)
		})
		if err != nil || len(states) == 0 {
			return err
		}
		locks := v.locksByKey()
		select {
		case <-v.ended: // and locks that ended with it are not known any more
			return nil
		default:
		}
		last := *after
		for _, state := range states {
			if state.Token == 0 {
				last = string(state.Name)
			} else if err := v.freeIfUnknown(state, locks[keyOf(state)]); err != nil {
				return err
			}
		}
		*after = last
		if !v.pause(max(time.Since(began), time.Millisecond)) {
			return nil
		}
	}
}

// locksByKey returns every lock of the Locker.
func (v *verification) locksByKey() map[heldKey]*Held {
	locks := make(map[heldKey]*Held)
	for _, ls := range v.keeper.EveryLease() {
		for _, h := range ls.held() {
			locks[h.key()] = h
		}
	}
	return locks
}

// freeIfUnknown frees a name that the lease holds, unless h, the lock with its key, is on it.
func (v *verification) freeIfUnknown(state store.State, h *Held) (err error) {
	name := string(state.Name)
	switch {
	case h != nil && slices.Contains(h.AttachedTo().ends(), v.Lease):
	case h != nil: // a failover may have forgotten that it was moved on from here; it ends before the name is freed
		err = v.soon(h.check)
	case state.Permit:
		_, err = v.store.ReleasePermit(v.keeper.Closing, name, v.ID, state.Token)
	case v.Orphans.Has(name, 0): // it is reaped, and knows for how long it is kept
	default:
		_, err = holding{Lease: v.Lease, name: name, token: state.Token}.release(v.keeper.Closing, 0)
	}
	return err
}
