package leasetable

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock/schema"
)

// freeForgotten frees the names that t's lease holds and nobody here does: those whose release a crash
// or a failover of the database has forgotten. The term is retired, and so takes no names while this
// looks for them; when its last claim has ended, every lock that it holds is known.
func (t *term) freeForgotten() {
	for pause := firstPause; ; pause = min(2*pause, t.ttl/3) {
		if t.claimless() && t.freeUnknown(t.locker.closing) == nil {
			return
		}
		if !t.rest(pause) {
			return
		}
	}
}

func (t *term) claimless() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.claims == 0
}

// freeUnknown frees the names that are held by t's lease and are no locks of the term.
func (t *term) freeUnknown(ctx context.Context) error {
	var held []sight
	err := once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		args := []any{t.id}
		if t.store.dialect == schema.MySQL { // its placeholders have no numbers
			args = append(args, t.id)
		}
		held, err = t.store.sights(ctx, namesOf, args...)
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
	for _, other := range t.locker.everyTerm() {
		other.mu.Lock()
		for le := range other.locks {
			locks[key{le.Name(), le.token}] = le
		}
		other.mu.Unlock()
	}
	for _, seen := range held {
		name := string(seen.Name)
		le := locks[key{name, seen.Token}]
		switch {
		case le != nil && slices.Contains(le.spot().ends(), t):
		case le != nil: // a failover forgot that it was moved on from here, maybe; it is told before the name is freed
			err = checkSoon(ctx, le)
		case seen.Place:
			_, err = t.store.freePlace(ctx, name, t.id, seen.Token)
		case t.isStray(name): // which chaseStrays frees, and knows for how long it is to be kept
		default:
			_, err = t.release(ctx, name, seen.Token, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
