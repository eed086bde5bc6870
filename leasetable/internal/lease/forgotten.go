package lease

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// freeForgotten frees the names that the lease holds and no lock here has: a crash or a failover of the database has
// forgotten their release (I23). The lease is retired, so it acquires no names meanwhile. When its last claim has
// ended, every lock on it is known.
func (ls *Lease) freeForgotten() {
	for pause := backoff.First; ; pause = min(2*pause, ls.TTL/3) {
		if ls.claimless() && ls.freeUnknown(ls.keeper.Closing) == nil {
			return
		}
		if !ls.pause(pause) {
			return
		}
	}
}

func (ls *Lease) claimless() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.claims == 0
}

// freeUnknown frees the names that the lease holds in the database but that no lock on it has (I23).
func (ls *Lease) freeUnknown(ctx context.Context) error {
	var names []store.State
	err := dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		names, err = ls.store.NamesOf(ctx, ls.ID)
		return err
	})
	if err != nil {
		return err
	}
	type key struct {
		name  string
		token int64
	}
	locks := make(map[key]*Held)
	for _, other := range ls.keeper.EveryLease() {
		other.mu.Lock()
		for h := range other.locks {
			locks[key{h.name(), h.Token}] = h
		}
		other.mu.Unlock()
	}
	for _, state := range names {
		name := string(state.Name)
		h := locks[key{name, state.Token}]
		switch {
		case h != nil && slices.Contains(h.AttachedTo().ends(), ls):
		case h != nil: // a failover may have forgotten that it was moved on from here; it ends before the name is freed
			err = checkSoon(ctx, h)
		case state.Permit:
			_, err = ls.store.ReleasePermit(ctx, name, ls.ID, state.Token)
		case ls.orphans.has(name, 0): // it is reaped, and knows for how long it is kept
		default:
			_, err = ls.release(ctx, name, state.Token, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
