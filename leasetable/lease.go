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
	hold   *hold.Hold
	locker *Locker
	token  int64
	keep   time.Duration // see WithHoldAtLeast
	place  bool          // the name is held together with others; the turn is given up then
	since  time.Time     // when this process got the name
	wanted bool          // another process waited for the name when it was passed on
	over   func()        // gives up the turn of the name; only the first call counts
	apart  bool          // it has not got the turn of the name, and terms of its own

	mu   sync.Mutex // is taken after that of a term
	at   spot       // guarded by mu
	was  []*term    // guarded by mu: those that it hung on before
	kept int        // guarded by mu: how many need the turn, whether the lock is over or not
	left bool       // guarded by mu: the turn is given up, or will be by the last of those
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
	for _, t := range le.spot().ends() {
		left = min(left, t.sure())
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
	t := le.spot().term
	ctx, cancel := t.locker.bound(ctx)
	defer cancel()
	if le.Context().Err() == nil {
		if err := t.renewNow(ctx); err != nil {
			return t.locker.because(ctx, err)
		}
	}
	if le.Context().Err() != nil {
		return context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	return nil
}

// newLease makes the lock that was granted with token on t.
func newLease(ctx context.Context, t *term, name string, token int64, over func()) *Lease {
	le := &Lease{locker: t.locker, at: spot{term: t}, token: token, over: over, since: time.Now()}
	le.hold = hold.New(ctx, name, le.release)
	return le
}

// release does what Release says. The lease of a release that was not confirmed takes no new locks.
func (le *Lease) release(ctx context.Context) error {
	at := le.spot()
	t := at.term
	trusted, cause := le.heldUntilNow(t) //nolint:contextcheck // the lock has a context of its own
	if t.locker.closing.Err() != nil {   // Close ends the lease, if it had not ended before
		le.leave()
		return errors.Join(cause, sqllock.ErrClosed)
	}
	if at.next != nil {
		return le.releaseBoth(ctx, at)
	}
	if le.mayPass() {
		if reviews, held := t.setOut(le); held {
			return le.pass(ctx, t, reviews)
		}
	}
	var freed bool
	var err error
	if le.place {
		freed, err = t.releasePlace(ctx, le.Name(), le.token)
	} else {
		freed, err = t.release(ctx, le.Name(), le.token, le.keep)
	}
	defer t.detach(le)
	defer le.leave()
	return le.released(t, freed, err, trusted, cause)
}

// heldUntilNow reports, of a lock that is being released or handed over, whether the holder had it until then and the
// database is sure to keep the lease at this moment, and why not if that is known.
func (le *Lease) heldUntilNow(t *term) (bool, error) {
	if told := context.Cause(le.Context()); !errors.Is(told, sqllock.ErrReleased) {
		return false, told
	}
	return t.trustedNow()
}

// released says what a release came to. Before it the database was sure to keep the lease, or
// the lease had ended.
func (le *Lease) released(t *term, freed bool, err error, trusted bool, cause error) error {
	switch {
	case err != nil && t.locker.closing.Err() != nil:
		return errors.Join(cause, sqllock.ErrClosed)
	case err != nil && le.place:
		t.leavePlace(le.Name(), le.token)
		return notConfirmed(err)
	case err != nil:
		mine := le.leaveStrays(le.keep, t)
		if _, ended := t.trustedNow(); !mine && ended == nil { // the lock alone was lost: the table had said so
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
func (le *Lease) releaseBoth(ctx context.Context, at spot) error {
	trusted, cause := le.heldUntilNow(at.term) //nolint:contextcheck // the lock has a context of its own
	if trusted {
		trusted, cause = at.next.trustedNow()
	}
	freed, err := at.term.free(ctx, false, func(ctx context.Context) (int64, error) {
		for _, t := range at.ends() {
			p := &part{name: le.Name(), id: t.id, token: le.token, keep: le.keep}
			if freed, err := t.store.frees.do(ctx, p, true); freed.Token != 0 || err != nil {
				return t.freed(le.Name(), freed), err
			}
		}
		return 0, nil
	})
	defer le.leave()
	for _, t := range at.ends() {
		defer t.detach(le)
	}
	if err != nil {
		le.leaveStrays(le.keep, at.next)
	}
	return le.released(at.term, freed, err, trusted, cause)
}

// release frees name as held with token, once keep has passed since it was acquired, and reports
// whether it was held. It is tried by a statement first that leaves out rows which somebody has locked.
func (t *term) release(ctx context.Context, name string, token int64, keep time.Duration) (freed bool, err error) {
	p := &part{name: name, id: t.id, token: token, keep: keep}
	took, err := t.store.frees.do(bound.To(t.locker.closing, ctx), p, false)
	if took.Token != 0 {
		return t.freed(name, took) > 0, nil
	}
	return t.free(ctx, err != nil && !answered(err), func(ctx context.Context) (int64, error) {
		again := *p
		took, err := t.store.frees.do(ctx, &again, true)
		return t.freed(name, took), err
	})
}

// freed has this process leave a name alone that it has freed and another waits for, and returns how many
// were freed.
func (t *term) freed(name string, took taken) int64 {
	if took.Wanted {
		_, grace := t.locker.shares()
		t.locker.manners.giveWay(name, grace)
	}
	return min(took.Token, 1)
}

// disown frees name whatever token it is held with, and reports whether it was held.
func (t *term) disown(ctx context.Context, name string) (freed bool, err error) {
	return t.free(ctx, false, func(ctx context.Context) (int64, error) {
		return t.store.disown(ctx, name, t.id, 0)
	})
}

// free runs a statement that frees a name. An attempt whose answer was lost is repeated; when the
// repetition then finds nothing to free while the lease is trusted, it was the first attempt that
// freed it; there may have been one before that was unanswered.
func (t *term) free(
	ctx context.Context, unanswered bool, statement func(context.Context) (int64, error),
) (freed bool, err error) {
	err = retry(bound.To(t.locker.closing, ctx), releaseTimeout, func(ctx context.Context) error {
		n, err := statement(ctx)
		if err != nil {
			unanswered = unanswered || !answered(err)
			return err
		}
		freed = n > 0
		return nil
	})
	if trusted, _ := t.trustedNow(); err == nil && !freed && unanswered && trusted {
		freed = true
	}
	return freed, err
}
