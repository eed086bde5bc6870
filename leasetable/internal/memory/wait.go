package memory

import (
	"context"
	"time"
)

// waitSteps are the steps of store.WaitSteps.
type waitSteps struct{ *Server }

// NoteWaiter implements store.Store.
func (s waitSteps) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (noted bool, err error) {
	held := func(r lockRow) bool { return r.lease != "" }
	err = s.run(ctx, func(t *Tx) error {
		if r, there := s.locks[name]; !there || !held(r) {
			return nil
		}
		noted = t.changeUnlocked(name, held, func(r *lockRow) {
			now := t.now()
			if !r.hasWaiter(now) || since < r.waiterSince {
				r.waiterSince = since
			}
			r.waiterUntil = now + within.Microseconds()
		})
		return nil
	})
	return noted, err
}

// RemoveWaiter implements store.Store.
func (s waitSteps) RemoveWaiter(ctx context.Context, name string, since int64) error {
	noted := func(r lockRow) bool { return r.waiterSince == since }
	return s.run(ctx, func(t *Tx) error {
		if r, there := s.locks[name]; there && noted(r) {
			t.changeUnlocked(name, noted, func(r *lockRow) { r.waiterUntil = 0 })
		}
		return nil
	})
}

// NoteExclusiveWaiter implements store.Store.
func (s waitSteps) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	return s.run(ctx, func(t *Tx) error {
		_, err := t.change(ctx, name, func(r lockRow) bool { return r.limited }, func(r *lockRow) {
			r.exclusiveUntil = 0
			if us != nil {
				r.exclusiveUntil = t.now() + us.(int64)
			}
		})
		return err
	})
}
