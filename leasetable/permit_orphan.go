package leasetable

import (
	"context"
	"slices"
)

// strayPlace is a place that a lost answer may have left taken: of the name, with the token.
type orphanPermit struct {
	name  string
	token int64
}

// leavePlace notes that this lease may have a place, or come to have it, though nobody knows. It has the place with
// this token or not at all, so the lease can go on; but until that is settled it does not ask for the same place again,
// which it could not tell from the stray.
func (ls *lease) leaveOrphanPermit(name string, token int64) {
	ls.mu.Lock()
	ls.orphanPermits = append(ls.orphanPermits, orphanPermit{name, token})
	first := !ls.reapingPermits
	ls.reapingPermits = true
	ls.mu.Unlock()
	if first {
		_ = ls.locker.start(ls.reapPermits) // of a closed Locker the lease is ended
	}
}

// mayHave reports whether this lease may have that place though nobody knows.
func (ls *lease) mayHave(orphan orphanPermit) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Contains(ls.orphanPermits, orphan)
}

// chasePlaces frees those places, one after the other. The end of the lease does so for good.
func (ls *lease) reapPermits() {
	for pause := firstPause; ; pause = min(2*pause, ls.ttl/3) {
		ls.mu.Lock()
		orphans := slices.Clone(ls.orphanPermits)
		ls.mu.Unlock()
		for _, orphan := range orphans {
			if ls.releaseOrphanPermit(ls.locker.closing, orphan) != nil {
				continue
			}
			ls.mu.Lock()
			ls.orphanPermits = slices.DeleteFunc(ls.orphanPermits, func(s orphanPermit) bool { return s == orphan })
			ls.mu.Unlock()
		}
		ls.mu.Lock()
		ls.reapingPermits = len(ls.orphanPermits) > 0
		done := !ls.reapingPermits
		ls.mu.Unlock()
		if done {
			return
		}
		if !ls.pause(pause) {
			return
		}
	}
}

// freeStray first has the statement fail that may still be under way, and then frees what it may have taken.
func (ls *lease) releaseOrphanPermit(ctx context.Context, orphan orphanPermit) error {
	return once(ctx, attemptTimeout, func(ctx context.Context) error {
		if err := ls.store.bumpToken(ctx, orphan.name, orphan.token-1); err != nil {
			return err
		}
		_, err := ls.store.releasePermit(ctx, orphan.name, ls.id, orphan.token)
		return err
	})
}

// releasePlace frees the place of a lock, and reports whether it was held.
func (ls *lease) releasePermit(ctx context.Context, name string, token int64) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.releasePermit(ctx, name, ls.id, token)
	})
}
