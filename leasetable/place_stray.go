package leasetable

import (
	"context"
	"slices"
)

// strayPlace is a place that a lost answer may have left taken: of the name, with the token.
type strayPlace struct {
	name  string
	token int64
}

// leavePlace notes that this lease may have a place, or come to have it, though nobody knows. It has the place with
// this token or not at all, so the lease can go on; but until that is settled it does not ask for the same place again,
// which it could not tell from the stray.
func (t *term) leavePlace(name string, token int64) {
	t.mu.Lock()
	t.strayPlaces = append(t.strayPlaces, strayPlace{name, token})
	first := !t.chasingPlaces
	t.chasingPlaces = true
	t.mu.Unlock()
	if first {
		_ = t.locker.start(t.chasePlaces) // of a closed Locker the lease is ended
	}
}

// mayHave reports whether this lease may have that place though nobody knows.
func (t *term) mayHave(stray strayPlace) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.strayPlaces, stray)
}

// chasePlaces frees those places, one after the other. The end of the lease does so for good.
func (t *term) chasePlaces() {
	for pause := firstPause; ; pause = min(2*pause, t.ttl/3) {
		t.mu.Lock()
		strays := slices.Clone(t.strayPlaces)
		t.mu.Unlock()
		for _, stray := range strays {
			if t.freeStray(t.locker.closing, stray) != nil {
				continue
			}
			t.mu.Lock()
			t.strayPlaces = slices.DeleteFunc(t.strayPlaces, func(s strayPlace) bool { return s == stray })
			t.mu.Unlock()
		}
		t.mu.Lock()
		t.chasingPlaces = len(t.strayPlaces) > 0
		done := !t.chasingPlaces
		t.mu.Unlock()
		if done {
			return
		}
		if !t.rest(pause) {
			return
		}
	}
}

// freeStray first has the statement fail that may still be under way, and then frees what it may have taken.
func (t *term) freeStray(ctx context.Context, stray strayPlace) error {
	return once(ctx, attemptTimeout, func(ctx context.Context) error {
		if err := t.store.raise(ctx, stray.name, stray.token-1); err != nil {
			return err
		}
		_, err := t.store.freePlace(ctx, stray.name, t.id, stray.token)
		return err
	})
}

// releasePlace frees the place of a lock, and reports whether it was held.
func (t *term) releasePlace(ctx context.Context, name string, token int64) (freed bool, err error) {
	return t.free(ctx, false, func(ctx context.Context) (int64, error) {
		return t.store.freePlace(ctx, name, t.id, token)
	})
}
