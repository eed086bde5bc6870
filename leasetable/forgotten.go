package leasetable

import (
	"context"
	"time"
)

// freeForgotten frees the names that t's lease holds and nobody here does: those whose release a crash
// or a failover of the database has forgotten. The term is retired, and so takes no names while this
// looks for them; when its last claim has ended, every lock that it holds is known.
func (t *term) freeForgotten() {
	for pause := firstPause; ; pause = min(2*pause, t.ttl/3) {
		if t.claimless() && t.freeUnknown(t.locker.closing) == nil {
			return
		}
		timer := time.NewTimer(jitter(pause))
		select {
		case <-t.over: // and with it what it held
		case <-t.locker.closing.Done():
		case <-timer.C:
			continue
		}
		timer.Stop()
		return
	}
}

func (t *term) claimless() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.claims == 0
}

// freeUnknown frees the names that are held by t's lease and are no locks of the term.
func (t *term) freeUnknown(ctx context.Context) error {
	var held map[string]taken
	err := once(ctx, attemptTimeout, func(ctx context.Context) (err error) {
		held, err = t.store.names(t.store.query(ctx, &t.store.work, heldBy, t.id))
		return err
	})
	if err != nil {
		return err
	}
	t.mu.Lock()
	for le := range t.locks {
		if held[le.Name()].Token == le.token {
			delete(held, le.Name())
		}
	}
	t.mu.Unlock()
	for name, forgotten := range held {
		if _, err := t.release(ctx, name, forgotten.Token, 0); err != nil {
			return err
		}
	}
	return nil
}
