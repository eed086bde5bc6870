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
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// releaseTimeout bounds the retries of a release.
const releaseTimeout = 5 * time.Second

// Lease is a lock of this package.
type Lease struct {
	hold       *hold.Hold
	locker     *Locker
	token      int64
	minHold    time.Duration // see WithHoldAtLeast
	permit     bool          // it is a share or permit; such a lock has left the wait queue
	since      time.Time     // when this process got the name
	hasWaiter  bool          // another process waited for the name at the last handoff
	leaveQueue func()        // leaves the wait queue of the name; only the first call counts
	dedicated  bool          // it has no position in the wait queue, and leases of its own

	mu         sync.Mutex // is locked after the mu of a lease
	at         attachment // guarded by mu
	previous   []*lease   // guarded by mu: leases that it was attached to before
	queueUsers int        // guarded by mu: how many uses need the position in the wait queue, whether the lock is over or not
	queueLeft  bool       // guarded by mu: the lock has left the wait queue, or will when the last use ends
}

var _ sqllock.Lock = (*Lease)(nil)

// Name implements sqllock.Lock.
func (le *Lease) Name() string { return le.hold.Name() }

// Context implements sqllock.Lock. It is cancelled when the lock ends, for any reason. context.Cause then matches
// sqllock.ErrReleased, ErrLost or ErrExpired, or sqllock.ErrClosed if the Locker was closed.
func (le *Lease) Context() context.Context { return le.hold.Context() }

// Release implements sqllock.Lock. It frees the name, or hands it off to the next goroutine of this Locker that waits
// for it.
//
// It returns nil if the lock was held until now, sqllock.ErrExpired if its deadline had passed but nobody had taken the
// name, sqllock.ErrLost if somebody had, and sqllock.ErrClosed if the Locker is closed. Any other error means that the
// database did not confirm within about 8 s. The release is then retried in the background. The name is free at the
// latest when the lease expires; a lease with a minimum hold ([WithHoldAtLeast]) is renewed until that has passed.
func (le *Lease) Release(ctx context.Context) error { return le.hold.Release(ctx) }

// Token returns the fencing token. It is higher than that of every earlier acquisition of the name.
func (le *Lease) Token() int64 { return le.token }

// Remaining returns how long the lock is sure to last without another renewal, or 0 when it is over. The next renewal
// comes within a third of the TTL.
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

// Renew renews the lease now, and with it the Locker's other locks of the same TTL. The lock then lasts for 5/6 of its
// TTL, even if later renewals fail. ErrLost and ErrExpired mean that the lock is over. After any other error nothing
// has changed, and renewals go on.
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

// newLease returns the lock that was granted with token on ls. over leaves the wait queue of the name.
func newLease(ctx context.Context, ls *lease, name string, token int64, over func()) *Lease {
	le := &Lease{locker: ls.locker, at: attachment{lease: ls}, token: token, leaveQueue: over, since: time.Now()}
	le.hold = hold.New(ctx, name, le.release)
	return le
}

// release implements Release. If the release of a name is not confirmed, the lease takes no new locks. After that of a
// permit it does.
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

// heldUntilNow reports whether a lock that is being released or handed over was held until then, and its lease is still
// trusted. If not, it returns the reason, if that is known.
func (le *Lease) heldUntilNow(ls *lease) (bool, error) {
	if told := context.Cause(le.Context()); !errors.Is(told, sqllock.ErrReleased) {
		return false, told
	}
	return ls.trustedNow()
}

// released returns the result of a release: freed and err are its outcome. Before the release the lease was trusted, or
// cause says why it had ended.
func (le *Lease) released(ls *lease, freed bool, err error, trusted bool, cause error) error {
	switch {
	case err != nil && ls.locker.closing.Err() != nil:
		return errors.Join(cause, sqllock.ErrClosed)
	case err != nil && le.permit:
		ls.leaveOrphanPermit(le.Name(), le.token)
		return notConfirmed(err)
	case err != nil:
		mine := le.leaveOrphans(le.minHold, ls)
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

// releaseBoth frees a name for which the outcome of a move is unknown. It tries the old lease first, because the name
// never moves back to it.
func (le *Lease) releaseBoth(ctx context.Context, at attachment) error {
	trusted, cause := le.heldUntilNow(at.lease) //nolint:contextcheck // the lock has a context of its own
	if trusted {
		trusted, cause = at.pending.trustedNow()
	}
	freed, err := at.lease.free(ctx, false, func(ctx context.Context) (int64, error) {
		for _, ls := range at.ends() {
			req := &store.Request{Name: le.Name(), ID: ls.id, Token: le.token, MinHold: le.minHold}
			if freed, err := ls.store.ReleaseSoon(ctx, req, true); freed.Token != 0 || err != nil {
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

// release frees name, held with token, and reports whether it was held. The name stays taken until keep after its
// acquisition. The first attempt may share a statement with others, which skips locked rows. Later
// attempts may wait for the row lock.
func (ls *lease) release(ctx context.Context, name string, token int64, keep time.Duration) (freed bool, err error) {
	req := &store.Request{Name: name, ID: ls.id, Token: token, MinHold: keep}
	got, err := ls.store.ReleaseSoon(bound.WithValuesOf(ls.locker.closing, ctx), req, false)
	if got.Token != 0 {
		return ls.noteReleased(name, got) > 0, nil
	}
	return ls.free(ctx, err != nil && !dberr.OutcomeKnown(err), func(ctx context.Context) (int64, error) {
		again := *req
		got, err := ls.store.ReleaseSoon(ctx, &again, true)
		return ls.noteReleased(name, got), err
	})
}

// noteReleased makes this process yield a freed name for a while if another process waits for it. It returns how many
// names were freed.
func (ls *lease) noteReleased(name string, got store.Result) int64 {
	if got.HasWaiter {
		_, grace := ls.locker.shares()
		ls.locker.yields.add(name, grace)
	}
	return min(got.Token, 1)
}

// ReleaseByLease frees name if this lease holds it, whatever the token, and reports whether it was held.
func (ls *lease) releaseByLease(ctx context.Context, name string) (freed bool, err error) {
	return ls.free(ctx, false, func(ctx context.Context) (int64, error) {
		return ls.store.ReleaseByLease(ctx, name, ls.id, 0)
	})
}

// free runs a statement that frees a name, and retries it. If an answer is lost, and a retry finds nothing to free
// while the lease is trusted, an earlier attempt has freed the name. unanswered says that there was such an attempt
// before.
func (ls *lease) free(
	ctx context.Context, unanswered bool, statement func(context.Context) (int64, error),
) (freed bool, err error) {
	err = dberr.Retry(bound.WithValuesOf(ls.locker.closing, ctx), releaseTimeout, func(ctx context.Context) error {
		n, err := statement(ctx)
		if err != nil {
			unanswered = unanswered || !dberr.OutcomeKnown(err)
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
