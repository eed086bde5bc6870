package leasetable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/hold"
)

// releaseTimeout bounds a release.
const releaseTimeout = 5 * time.Second

// Lease is a lock of this package.
type Lease struct {
	*hold.Hold
	term  *term
	token int64
	over  func() // gives up the turn of the name; only the first call counts
}

var _ sqllock.Lock = (*Lease)(nil)

// Token returns the fencing token: higher than that of every earlier acquisition of the name.
func (le *Lease) Token() int64 { return le.token }

// newLease makes the lock that was granted with token on t.
func newLease(ctx context.Context, t *term, name string, token int64, over func()) *Lease {
	le := &Lease{term: t, token: token, over: over}
	le.Hold = hold.New(ctx, name, le.release)
	return le
}

// release frees the name in the table. It returns nil if the lock was held until now,
// ErrExpired if its deadline had passed but nobody had taken it, ErrLost if somebody had.
//
// Any other error means that the database did not confirm within releaseTimeout. The lease then
// takes no new locks and goes on trying in the background; at the latest the name is free when
// the lease expires.
func (le *Lease) release(ctx context.Context) error {
	defer le.over()
	t := le.term
	trusted, cause := t.trustedNow()
	if t.locker.closing.Err() != nil { // Close ends the lease, if it had not ended before
		return errors.Join(cause, sqllock.ErrClosed)
	}
	freed, err := t.release(ctx, le.Name(), le.token)
	defer t.detach(le)
	switch {
	case err != nil && t.locker.closing.Err() != nil:
		return errors.Join(cause, sqllock.ErrClosed)
	case err != nil:
		t.leaveStray(le.Name())
		return fmt.Errorf("not confirmed, and retried in the background until the lease ends: %w", err)
	case freed && trusted:
		return nil
	case freed && errors.Is(cause, sqllock.ErrLost):
		return cause
	case freed:
		return fmt.Errorf("%w before it was released, and nobody took it", sqllock.ErrExpired)
	}
	return errTaken
}

// release frees name as held with token, and reports whether it was held. An attempt whose
// answer was lost is repeated; when the repetition then finds nothing to free while the lease
// is trusted, it was the first attempt that freed it.
func (t *term) release(ctx context.Context, name string, token int64) (freed bool, err error) {
	ctx, unbind := t.locker.bound(ctx)
	defer unbind()
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	unanswered := false
	err = retry(ctx, func(ctx context.Context) error {
		n, err := t.store.change(ctx, &t.store.work, release, []byte(name), t.id, token)
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
