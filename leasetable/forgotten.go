package leasetable

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock/schema"
)

// freeForgotten frees the names that t's lease holds and nobody here does: those whose release a crash
// or a failover of the database has forgotten. The term is retired, and so takes no names while this
// looks for them; when its last claim has ended, every lock that it holds is known.
func (ls *lease) freeForgotten() {
	for pause := firstPause; ; pause = min(2*pause, ls.ttl/3) {
		if ls.claimless() && ls.freeUnknown(ls.locker.closing) == nil {
			return
		}
		if !ls.pause(pause) {
			return
		}
	}
}

func (ls *lease) claimless() bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.claims == 0
}

// freeUnknown frees the names that are held by t's lease and are no locks of the term.
func (ls *lease) freeUnknown(ctx context.Context) error {
	var held []lockState
	err := once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		args := []any{ls.id}
		if ls.store.dialect == schema.MySQL { // its placeholders have no numbers
			args = append(args, ls.id)
		}
		held, err = ls.store.states(ctx, namesOf, args...)
		return err
	})
	if err != nil {
		return err
	}
	type key struct {
		name  string
		token int64
	}
	locks := make(map[key]*Lease)
	for _, other := range ls.locker.everyLease() {
		other.mu.Lock()
		for le := range other.locks {
			locks[key{le.Name(), le.token}] = le
		}
		other.mu.Unlock()
	}
	for _, state := range held {
		name := string(state.Name)
		le := locks[key{name, state.Token}]
		switch {
		case le != nil && slices.Contains(le.attachedTo().ends(), ls):
		case le != nil: // a failover forgot that it was moved on from here, maybe; it is told before the name is freed
			err = checkSoon(ctx, le)
		case state.Permit:
			_, err = ls.store.releasePermit(ctx, name, ls.id, state.Token)
		case ls.isOrphan(name): // which chaseStrays frees, and knows for how long it is to be kept
		default:
			_, err = ls.release(ctx, name, state.Token, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
