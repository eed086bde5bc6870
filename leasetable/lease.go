package leasetable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/hold"
)

// releaseTimeout bounds the repetitions of a release.
const releaseTimeout = 5 * time.Second

// Lease is a lock of this package.
type Lease struct {
	hold       *hold.Hold
	locker     *Locker
	token      int64
	minHold    time.Duration // see WithHoldAtLeast
	permit     bool          // the name is held together with others; the turn is given up then
	since      time.Time     // when this process got the name
	hasWaiter  bool          // another process waited for the name when it was passed on
	leaveQueue func()        // gives up the turn of the name; only the first call counts
	dedicated  bool          // it has not got the turn of the name, and terms of its own

	mu         sync.Mutex // is taken after that of a term
	at         attachment // guarded by mu
	previous   []*lease   // guarded by mu: those that it hung on before
	queueUsers int        // guarded by mu: how many need the turn, whether the lock is over or not
	queueLeft  bool       // guarded by mu: the turn is given up, or will be by the last of those
}

var _ sqllock.Lock = (*Lease)(nil)

// Name implements sqllock.Lock.
func (le *Lease) Name() string { return le.hold.Name() }

// Context implements sqllock.Lock: it is cancelled when the lock ends, for any reason, and context.Cause then matches
// sqllock.ErrReleased, ErrLost or ErrExpired.
func (le *Lease) Context() context.Context { return le.hold.Context() }

// Release implements sqllock.Lock: it frees the name, or passes it on to the next goroutine of this Locker that waits for it.
//
// It returns nil if the lock was held until now, sqllock.ErrExpired if its deadline had passed but nobody had taken it,
// and sqllock.ErrLost if somebody had. Any other error means that the database did not confirm within some 8 s. The release is then
// repeated in the background; at the latest the name is free when the lease expires, which for a name that is to be
// kept ([WithHoldAtLeast]) is renewed for as long as that.
func (le *Lease) Release(ctx context.Context) error { return le.hold.Release(ctx) }

// Token returns the fencing token: higher than that of every earlier acquisition of the name.
func (le *Lease) Token() int64 { return le.token }

// Remaining returns for how long the lock is sure to last without another renewal, which comes
// within a third of the TTL; 0 when it is over.
func (le *Lease) Remaining() time.Duration {
	if le.Context().Err() != nil {
		return 0
	}
	left := time.Duration(math.MaxInt64)
	for _, ls := range le.attachedTo().ends() {
		left = min(left, ls.sure())
	}
	return left
}

// Renew renews the lease now, and with it the Locker's other locks of the same TTL: a lock then
// lasts for 5/6 of its TTL, whatever happens to later renewals. ErrLost and ErrExpired say that
// the lock is over. After another error nothing has changed, and renewals go on.
func (le *Lease) Renew(ctx context.Context) error {
	if err := le.renew(ctx); err != nil {
		return &sqllock.OpError{Op: "renew", Name: le.Name(), Err: err}
	}
	return nil
}

func (le *Lease) renew(ctx context.Context) error {
	ls := le.attachedTo().lease
	ctx, cancel := ls.locker.bound(ctx)
	defer cancel()
	if le.Context().Err() == nil {
		if err := ls.renewNow(ctx); err != nil {
			return ls.locker.withCause(ctx, err)
		}
	}
	if le.Context().Err() != nil {
		return context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	return nil
}

// newLease makes the lock that was granted with token on t.
func newLease(ctx context.Context, ls *lease, name string, token int64, over func()) *Lease {
	le := &Lease{locker: ls.locker, at: attachment{lease: ls}, token: token, leaveQueue: over, since: time.Now()}
	le.hold = hold.New(ctx, name, le.release)
	return le
}

// release does what Release says. The lease of a release that was not confirmed takes no new locks.
func (le *Lease) release(ctx context.Context) error {
	at := le.attachedTo()
	ls := at.lease
	trusted, cause := le.heldUntilNow(ls) //nolint:contextcheck // the lock has a context of its own
	if ls.locker.closing.Err() != nil {   // Close ends the lease, if it had not ended before
		le.leave()
		return errors.Join(cause, sqllock.ErrClosed)
	}
	if at.pending != nil {
		return le.releaseBoth(ctx, at)
	}
	if le.mayHandOff() {
		if reviews, held := ls.beginHandoff(le); held {
			return le.handOff(ctx, ls, reviews)
		}
	}
	var freed bool
	var err error
	if le.permit {
		freed, err = ls.releasePermit(ctx, le.Name(), le.token)
	} else {
		freed, err = ls.release(ctx, le.Name(), le.token, le.minHold)
	}
	defer ls.detach(le)
	defer le.leave()
	return le.released(ls, freed, err, trusted, cause)
}

// heldUntilNow reports, of a lock that is being released or handed over, whether the holder had it until then and the
// database is sure to keep the lease at this moment, and why not if that is known.
func (le *Lease) heldUntilNow(ls *lease) (bool, error) {
	if told := context.Cause(le.Context()); !errors.Is(told, sqllock.ErrReleased) {
		return false, told
	}
	return ls.trustedNow()
}

// released says what a release came to. Before it the database was sure to keep the lease, or
// the lease had ended.
func (le *Lease) released(ls *lease, freed bool, err error, trusted bool, cause error) error {
	switch {
	case err != nil && ls.locker.closing.Err() != nil:
		return errors.Join(cause, sqllock.ErrClosed)
	case err != nil && le.permit:
		ls.leaveOrphanPermit(le.Name(), le.token)
		return notConfirmed(err)
	case err != nil:
		mine := le.leaveOrphans(le.minHold, ls)
		if _, ended := ls.trustedNow(); !mine && ended == nil { // the lock alone was lost: the table had said so
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

// releaseBoth frees a name of which it is not known whether it was moved: first where it was, for it
// never comes back there.
func (le *Lease) releaseBoth(ctx context.Context, at attachment) error {
	trusted, cause := le.heldUntilNow(at.lease) //nolint:contextcheck // the lock has a context of its own
	if trusted {
		trusted, cause = at.pending.trustedNow()
	}
	freed, err := at.lease.free(ctx, false, func(ctx context.Context) (int64, error) {
		for _, ls := range at.ends() {
			req := &request{name: le.Name(), id: ls.id, token: le.token, minHold: le.minHold}
			if freed, err := ls.store.releases.do(ctx, req, true); freed.Token != 0 || err != nil {
				return ls.noteReleased(le.Name(), freed), err
			}
		}
		return 0, nil
	})
	defer le.leave()
	for _, ls := range at.ends() {
		defer ls.detach(le)
	}
	if err != nil {
		le.leaveOrphans(le.minHold, at.pending)
	}
	return le.released(at.lease, freed, err, trusted, cause)
}

// release frees name as held with token, once keep has passed since it was acquired, and reports
// whether it was held. It is tried by a statement first that leaves out rows which somebody has locked.
func (ls *lease) release(ctx context.Context, name string, token int64, keep time.Duration) (freed bool, err error) {
	req := &request{name: name, id: ls.id, token: token, minHold: keep}
	got, err := ls.store.releases.do(bound.WithValuesOf(ls.locker.closing, ctx), req, false)
	if got.Token != 0 {
		return ls.noteReleased(name, got) > 0, nil
	}
	return ls.free(ctx, err != nil && !outcomeKnown(err), func(ctx context.Context) (int64, error) {
		again := *req
		got, err := ls.store.releases.do(ctx, &again, true)
		return ls.noteReleased(name, got), err
	})
}

// freed has this process leave a name alone that it has freed and another waits for, and returns how many
// were freed.
func (ls *lease) noteReleased(name string, got result) int64 {
	if got.HasWaiter {
		_, grace := ls.locker.shares()
		ls.locker.yields.add(name, grace)
	}
	return min(got.Token, 1)
}

// disown frees name whatever token it is held with, and reports whether it was held.
func (ls *lease) releaseByLease(ctx context.Context, name string) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.releaseByLease(ctx, name, ls.id, 0)
	})
}

// free runs a statement that frees a name. An attempt whose answer was lost is repeated; when the
// repetition then finds nothing to free while the lease is trusted, it was the first attempt that
// freed it; there may have been one before that was unanswered.
func (ls *lease) free(
	ctx context.Context, unanswered bool, statement func(context.Context) (int64, error),
) (freed bool, err error) {
	err = retry(bound.WithValuesOf(ls.locker.closing, ctx), releaseTimeout, func(ctx context.Context) error {
		n, err := statement(ctx)
		if err != nil {
			unanswered = unanswered || !outcomeKnown(err)
			return err
		}
		freed = n > 0
		return nil
	})
	if trusted, _ := ls.trustedNow(); err == nil && !freed && unanswered && trusted {
		freed = true
	}
	return freed, err
}
