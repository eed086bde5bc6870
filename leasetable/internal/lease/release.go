package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// releaseTimeout bounds the retries of a release.
const releaseTimeout = 5 * time.Second

// ending is the end of a lock that its holder gives up while it is attached to a lease.
type ending struct {
	*Held
	on      *Lease
	keep    time.Duration // how long the name stays taken after its acquisition: the minimum hold
	trusted bool          // the lock was held until then, and its lease is still trusted (I21)
	cause   error         // if not, the reason, if that is known
}

// endingOf begins the end of a lock on a lease.
func endingOf(h *Held, ls *Lease) ending {
	if told := h.over(); !errors.Is(told, sqllock.ErrReleased) {
		return ending{h, ls, h.MinHold, false, told}
	}
	trusted, cause := ls.trustedNow()
	return ending{h, ls, h.MinHold, trusted, cause}
}

// Free implements hold.Backend. If the release of a name is not confirmed, the lease takes no new locks. After that of a
// permit it does.
func (h *Held) Free(ctx context.Context) (result error) {
	at := h.AttachedTo()
	ls := at.Lease
	e := endingOf(h, ls) //nolint:contextcheck // the lock has a context of its own
	if option.GivesBack(ctx) {
		e.keep = 0
	}
	if ls.keeper.Closing.Err() != nil { // Close ends the lease, if it had not ended before
		h.position.leave()
		return e.closed()
	}
	if at.pending != nil {
		return e.releaseBoth(ctx, at)
	}
	if e.mayHandOff() {
		if c := ls.beginHandoff(h); c != nil {
			return e.handOff(ctx, c)
		}
	}
	freed, err := false, dberr.ErrUnreturned
	defer func() { // also if a driver panics
		result = e.result(freed, err)
		h.position.leave()
		ls.detach(h)
	}()
	if h.Permit {
		freed, err = h.holding(ls).releasePermit(ctx)
	} else {
		h.position.beginRelease()
		freed, err = h.holding(ls).release(ctx, e.keep)
	}
	return nil
}

// result returns the result of a release: freed and err are its outcome.
func (e ending) result(freed bool, err error) error {
	switch {
	case err != nil && e.Keeper.Closing.Err() != nil:
		if e.keep > 0 { // Close may come to the lease after this lock has left it
			e.leaveOrphans(e.keep, e.on)
		}
		return e.closed()
	case errors.Is(err, errUnconfirmed):
		return err
	case err != nil && e.Permit:
		e.on.Orphans.leavePermit(e.Name, e.Token)
		return notConfirmed(err)
	case err != nil:
		mine := e.leaveOrphans(e.keep, e.on)
		if _, ended := e.on.trustedNow(); mine || ended != nil {
			return notConfirmed(err)
		}
		// A verification has found that the lock is over. An attempt whose answer was lost may have released it.
		if e.trusted && !dberr.OutcomeKnown(err) {
			return nil
		}
		return errTaken
	case freed && e.trusted:
		return nil
	case freed && errors.Is(e.cause, sqllock.ErrLost):
		return e.cause
	case freed:
		return fmt.Errorf("%w before it was released, and nobody took it", sqllock.ErrExpired)
	}
	return errTaken
}

// closed returns the result of a release after Close: once, if Close has ended the lock.
func (e ending) closed() error {
	if errors.Is(e.cause, sqllock.ErrClosed) {
		return e.cause
	}
	return errors.Join(e.cause, sqllock.ErrClosed)
}

func notConfirmed(err error) error {
	return fmt.Errorf("not confirmed, and retried in the background until the lease ends: %w", err)
}

// releaseBoth frees a name for which the outcome of a move is unknown (I27). It tries the old lease first, because the
// name never moves back to it.
func (e ending) releaseBoth(ctx context.Context, at attachment) (result error) {
	if e.position.use() { // otherwise the end of the old lease has the lock leave the queue, and nobody frees the name on the other
		defer e.position.letGo()
	}
	if e.trusted {
		e.trusted, e.cause = at.pending.trustedNow()
	}
	freed, err := false, dberr.ErrUnreturned
	defer func() { // also if a driver panics
		if err != nil {
			e.leaveOrphans(e.keep, at.pending)
		}
		result = e.result(freed, err)
		for _, ls := range at.ends() {
			ls.detach(e.Held)
		}
		e.position.leave()
	}()
	both := e.holding(at.Lease)
	both.pending = at.pending
	freed, err = both.free(ctx, false, func(ctx context.Context) (int64, error) {
		for _, ls := range at.ends() {
			req := &store.Request{Name: e.Name, ID: ls.ID, Token: e.Token, MinHold: e.keep}
			if freed, err := ls.store.ReleaseAgain(ctx, req); freed.Token != 0 || err != nil {
				return e.holding(ls).noteReleased(freed), err
			}
		}
		return 0, nil
	})
	return nil
}

// holding is a name that a lease holds with a token, or may hold.
type holding struct {
	*Lease
	name    string
	token   int64
	lock    *Held  // nil: a claim has it
	pending *Lease // nil, or the other lease that may hold the name (I27)
}

// isLost reports whether its lock was found lost. Then it is not released: after a failover, tokens may repeat, and another
// lock of this lease may have the token since (I18).
func (hd holding) isLost() bool { return hd.lock != nil && hd.lock.lost.Load() }

// release frees the name, and reports whether it was held. The name stays taken until keep after its acquisition. The
// first attempt may share a statement with others, which skips locked rows. Later attempts may wait for the row lock.
func (hd holding) release(ctx context.Context, keep time.Duration) (freed bool, err error) {
	if hd.isLost() {
		return false, nil
	}
	req := &store.Request{Name: hd.name, ID: hd.ID, Token: hd.token, MinHold: keep}
	got, err := hd.store.Releases.Do(bound.WithValuesOf(hd.keeper.Closing, ctx), req)
	if got.Token != 0 {
		return hd.noteReleased(got) > 0, nil
	}
	return hd.free(ctx, err != nil && !dberr.OutcomeKnown(err), func(ctx context.Context) (int64, error) {
		got, err := hd.store.ReleaseAgain(ctx, req)
		return hd.noteReleased(got), err
	})
}

// noteReleased makes this process yield the freed name for a while if another process waits for it. It returns how many
// names were freed.
func (hd holding) noteReleased(got store.Result) int64 {
	if got.HasWaiter {
		had := time.Duration(0)
		if hd.lock != nil {
			had = time.Since(hd.lock.Since)
		}
		hd.keeper.Yields.To(hd.name, had)
	}
	return min(got.Token, 1)
}

// releasePermit frees the permit with the token, and reports whether it was held.
func (hd holding) releasePermit(ctx context.Context) (freed bool, err error) {
	return hd.free(ctx, false, func(ctx context.Context) (int64, error) {
		return hd.store.ReleasePermit(ctx, hd.name, hd.ID, hd.token)
	})
}

// areTrusted reports whether the database is sure to keep every lease that may hold the name. If not, it returns why, if that
// is known.
func (hd holding) areTrusted() (trusted bool, cause error) {
	if trusted, cause = hd.trustedNow(); trusted && hd.pending != nil {
		return hd.pending.trustedNow()
	}
	return trusted, cause
}

// errUnconfirmed is the error of a release whose answer was lost, and that finds nothing to free when it is repeated after
// the end of the lease: whether the first attempt freed the name, or somebody took it over since, is not known.
var errUnconfirmed = fmt.Errorf("%w before its release was confirmed", sqllock.ErrExpired)

// free runs a statement that frees a name, and retries it. If an answer is lost, and a retry finds nothing to free
// while its leases are trusted, an earlier attempt has freed the name (I21). unanswered says that there was such an
// attempt before.
func (hd holding) free(
	ctx context.Context, unanswered bool, statement func(context.Context) (int64, error),
) (freed bool, err error) {
	err = dberr.Retry(bound.WithValuesOf(hd.keeper.Closing, ctx), releaseTimeout, func(ctx context.Context) error {
		if hd.isLost() {
			return nil
		}
		n, err := statement(ctx)
		if err != nil {
			unanswered = unanswered || !dberr.OutcomeKnown(err)
			return err
		}
		freed = n > 0
		return nil
	})
	switch trusted, cause := hd.areTrusted(); {
	case err != nil && unanswered && dberr.OutcomeKnown(err):
		err = &dberr.Error{Err: err, Transient: true} // what an earlier attempt did is not known
	case err != nil || freed || !unanswered:
	case trusted:
		freed = true
	case !errors.Is(cause, sqllock.ErrLost):
		err = errUnconfirmed
	}
	return freed, err
}
