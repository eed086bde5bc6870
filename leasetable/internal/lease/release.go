package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// releaseTimeout bounds the retries of a release.
const releaseTimeout = 5 * time.Second

// release implements Release. If the release of a name is not confirmed, the lease takes no new locks. After that of a
// permit it does.
func (h *Held) release(ctx context.Context) error {
	at := h.AttachedTo()
	ls := at.Lease
	trusted, cause := h.heldUntilNow(ls) //nolint:contextcheck // the lock has a context of its own
	if ls.keeper.Closing.Err() != nil {  // Close ends the lease, if it had not ended before
		h.leave()
		return errors.Join(cause, sqllock.ErrClosed)
	}
	if at.pending != nil {
		return h.releaseBoth(ctx, at)
	}
	if h.mayHandOff() {
		if c := ls.beginHandoff(h); c != nil {
			return h.handOff(ctx, c)
		}
	}
	var freed bool
	var err error
	if h.Permit {
		freed, err = ls.releasePermit(ctx, h.name(), h.Token)
	} else {
		freed, err = ls.release(ctx, h.name(), h.Token, h.MinHold)
	}
	defer ls.detach(h)
	defer h.leave()
	return h.released(ls, freed, err, trusted, cause)
}

// released returns the result of a release: freed and err are its outcome (I21). Before the release the lease was
// trusted, or cause says why it had ended.
func (h *Held) released(ls *Lease, freed bool, err error, trusted bool, cause error) error {
	switch {
	case err != nil && ls.keeper.Closing.Err() != nil:
		return errors.Join(cause, sqllock.ErrClosed)
	case errors.Is(err, errUnconfirmed):
		return err
	case err != nil && h.Permit:
		ls.orphans.leavePermit(h.name(), h.Token)
		return notConfirmed(err)
	case err != nil:
		mine := h.leaveOrphans(h.MinHold, ls)
		if _, ended := ls.trustedNow(); !mine && ended == nil { // only the lock was lost: a verification had found that out
			return errTaken
		}
		return notConfirmed(err)
	case freed && trusted:
		return nil
	case freed && errors.Is(cause, sqllock.ErrLost):
		return cause
	case freed:
		return fmt.Errorf("%w before it was released, and nobody took it", sqllock.ErrExpired)
	}
	return errTaken
}

func notConfirmed(err error) error {
	return fmt.Errorf("not confirmed, and retried in the background until the lease ends: %w", err)
}

// releaseBoth frees a name for which the outcome of a move is unknown (I27). It tries the old lease first, because the
// name never moves back to it.
func (h *Held) releaseBoth(ctx context.Context, at attachment) error {
	trusted, cause := h.heldUntilNow(at.Lease) //nolint:contextcheck // the lock has a context of its own
	if trusted {
		trusted, cause = at.pending.trustedNow()
	}
	freed, err := at.Lease.free(ctx, false, func(ctx context.Context) (int64, error) {
		for _, ls := range at.ends() {
			req := &store.Request{Name: h.name(), ID: ls.ID, Token: h.Token, MinHold: h.MinHold}
			if freed, err := ls.store.ReleaseAgain(ctx, req); freed.Token != 0 || err != nil {
				return ls.noteReleased(h.name(), freed), err
			}
		}
		return 0, nil
	})
	defer h.leave()
	for _, ls := range at.ends() {
		defer ls.detach(h)
	}
	if err != nil {
		h.leaveOrphans(h.MinHold, at.pending)
	}
	return h.released(at.Lease, freed, err, trusted, cause)
}

// release frees name, held with token, and reports whether it was held. The name stays taken until keep after its
// acquisition. The first attempt may share a statement with others, which skips locked rows. Later
// attempts may wait for the row lock.
func (ls *Lease) release(ctx context.Context, name string, token int64, keep time.Duration) (freed bool, err error) {
	req := &store.Request{Name: name, ID: ls.ID, Token: token, MinHold: keep}
	got, err := ls.store.Releases.Do(bound.WithValuesOf(ls.keeper.Closing, ctx), req)
	if got.Token != 0 {
		return ls.noteReleased(name, got) > 0, nil
	}
	return ls.free(ctx, err != nil && !dberr.OutcomeKnown(err), func(ctx context.Context) (int64, error) {
		again := *req
		got, err := ls.store.ReleaseAgain(ctx, &again)
		return ls.noteReleased(name, got), err
	})
}

// noteReleased makes this process yield a freed name for a while if another process waits for it. It returns how many
// names were freed.
func (ls *Lease) noteReleased(name string, got store.Result) int64 {
	if got.HasWaiter {
		_, grace := ls.keeper.Shares()
		ls.keeper.Yields.add(name, grace)
	}
	return min(got.Token, 1)
}

// releaseByLease frees name if this lease holds it, whatever the token, and reports whether it was held.
func (ls *Lease) releaseByLease(ctx context.Context, name string) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.ReleaseByLease(ctx, name, ls.ID, 0)
	})
}

// errUnconfirmed is the error of a release whose answer was lost, and that finds nothing to free when it is repeated after
// the end of the lease: whether the first attempt freed the name, or somebody took it over since, is not known.
var errUnconfirmed = fmt.Errorf("%w before its release was confirmed", sqllock.ErrExpired)

// free runs a statement that frees a name, and retries it. If an answer is lost, and a retry finds nothing to free
// while the lease is trusted, an earlier attempt has freed the name (I21). unanswered says that there was such an
// attempt before.
func (ls *Lease) free(
	ctx context.Context, unanswered bool, statement func(context.Context) (int64, error),
) (freed bool, err error) {
	err = dberr.Retry(bound.WithValuesOf(ls.keeper.Closing, ctx), releaseTimeout, func(ctx context.Context) error {
		n, err := statement(ctx)
		if err != nil {
			unanswered = unanswered || !dberr.OutcomeKnown(err)
			return err
		}
		freed = n > 0
		return nil
	})
	if err == nil && !freed && unanswered {
		switch trusted, cause := ls.trustedNow(); {
		case trusted:
			freed = true
		case !errors.Is(cause, sqllock.ErrLost):
			err = errUnconfirmed
		}
	}
	return freed, err
}

// releasePermit frees the permit of a lock, and reports whether it was held.
func (ls *Lease) releasePermit(ctx context.Context, name string, token int64) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.ReleasePermit(ctx, name, ls.ID, token)
	})
}
