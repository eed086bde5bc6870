package lease

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// orphanPermit is a permit that a lost answer may have left taken: of the name, with the token.
type orphanPermit struct {
	name  string
	token int64
}

// leaveOrphanPermit notes that this lease may have a permit without a lock, or may still get it. It has the permit with
// this token or not at all, so the lease need not be retired. Until that is settled the lease does not ask for the same
// permit again, which it could not tell from the orphan.
func (ls *Lease) leaveOrphanPermit(name string, token int64) {
	ls.mu.Lock()
	ls.orphanPermits = append(ls.orphanPermits, orphanPermit{name, token})
	first := !ls.reapingPermits
	ls.reapingPermits = true
	ls.mu.Unlock()
	if first {
		_ = ls.keeper.Start(ls.reapPermits) // if the Locker is closed, the lease has ended
	}
}

// mayHave reports whether orphan is an orphan of this lease.
func (ls *Lease) mayHave(orphan orphanPermit) bool {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return slices.Contains(ls.orphanPermits, orphan)
}

// reapPermits frees the orphaned permits, one after the other. The end of the lease frees them for good.
func (ls *Lease) reapPermits() {
	for pause := backoff.First; ; pause = min(2*pause, ls.TTL/3) {
		ls.mu.Lock()
		orphans := slices.Clone(ls.orphanPermits)
		ls.mu.Unlock()
		for _, orphan := range orphans {
			if ls.releaseOrphanPermit(ls.keeper.Closing, orphan) != nil {
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

// releaseOrphanPermit first bumps the token, so that a statement that is still under way takes nothing. Then it frees
// the permit that the statement may have taken.
func (ls *Lease) releaseOrphanPermit(ctx context.Context, orphan orphanPermit) error {
	return dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
		if err := ls.store.BumpToken(ctx, orphan.name, orphan.token-1); err != nil {
			return err
		}
		_, err := ls.store.ReleasePermit(ctx, orphan.name, ls.ID, orphan.token)
		return err
	})
}

// ReleasePermit frees the permit of a lock, and reports whether it was held.
func (ls *Lease) releasePermit(ctx context.Context, name string, token int64) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.ReleasePermit(ctx, name, ls.ID, token)
	})
}

// Orphaned returns the number of orphaned permits.
func (ls *Lease) Orphaned() int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return len(ls.orphanPermits)
}
