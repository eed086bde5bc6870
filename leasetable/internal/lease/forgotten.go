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
func (v *verification) freeForgotten() {
	for pause := backoff.First; ; pause = min(2*pause, interval(v.TTL)) {
		v.mu.Lock()
		claims := v.claims
		v.mu.Unlock()
		if claims == 0 && v.freeUnknown() == nil {
			return
		}
		if !v.pause(pause) {
			return
		}
	}
}

// freeUnknown frees the names that the lease holds in the database but that no lock on it has (I23).
func (v *verification) freeUnknown() error {
	ctx := v.keeper.Closing
	var names []store.State
	err := dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
		names, err = v.store.NamesOf(ctx, v.ID)
		return err
	})
	if err != nil {
		return err
	}
	type key struct {
		name   string
		token  int64
		permit bool
	}
	locks := make(map[key]*Held)
	for _, other := range v.keeper.EveryLease() {
		for _, h := range other.held() {
			locks[key{h.Name, h.Token, h.Permit}] = h
		}
	}
	for _, state := range names {
		name := string(state.Name)
		h := locks[key{name, state.Token, state.Permit}]
		switch {
		case h != nil && slices.Contains(h.AttachedTo().ends(), v.Lease):
		case h != nil: // a failover may have forgotten that it was moved on from here; it ends before the name is freed
			err = v.checkSoon(h)
		case state.Permit:
			_, err = v.store.ReleasePermit(ctx, name, v.ID, state.Token)
		case v.Orphans.Has(name, 0): // it is reaped, and knows for how long it is kept
		default:
			_, err = holding{Lease: v.Lease, name: name, token: state.Token}.release(ctx, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
