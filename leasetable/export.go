package leasetable

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// errHandedOver ends a lock that was exported.
var errHandedOver = fmt.Errorf("%w: it was handed over by a ticket", sqllock.ErrReleased)

const exporting = "export"

// Export ends the lock here, and returns a ticket with which [Locker.Adopt], in any process, takes it on.
// Between the two nobody else has the name, for a time from now that nobody prolongs: from 200 ms to a year. When it
// has passed without an adoption the name is free. The Locker may be closed meanwhile.
//
// The lock's context ends with a cause that matches sqllock.ErrReleased; Release does nothing more, and
// WithHoldAtLeast is forgotten. End guarded transactions before, for the export waits for them.
//
// A ticket is good for one adoption. It is printable, at most 4096 bytes long, and says the name, the token
// and the id of a lease: no secret, but whoever has it can take the lock.
//
// An error while the lock's context has not ended says that the lock is held as before. After
// any other there is no ticket, and the lock is over: ErrLost and ErrExpired say that it was before; otherwise
// it was released instead, or, if nothing was confirmed, that goes on in the background, and the name is free at the latest
// when both the time of the ticket and the TTL have passed.
func (le *Lease) Export(ctx context.Context, valid time.Duration) (string, error) {
	text, err := le.export(ctx, valid)
	if op := (*sqllock.OpError)(nil); err != nil && !errors.As(err, &op) {
		err = &sqllock.OpError{Op: exporting, Name: le.Name(), Err: err}
	}
	return text, err
}

func (le *Lease) export(ctx context.Context, valid time.Duration) (string, error) {
	l := le.locker
	if err := checkAhead(valid, minTTL); err != nil {
		return "", err
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	if err := le.beginSettled(ctx); err != nil {
		return "", l.withCause(ctx, err)
	}
	defer l.moves.Done(le)
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails, says its documentation
	text, err := ticket{Version: ticketVersion, Name: []byte(le.Name()), Lease: id, Token: le.token}.text()
	if err != nil {
		return "", err
	}
	if _, err := l.grant(ctx, &l.store.work, id, valid, attemptTimeout); err != nil { // nothing refers to the row; it expires
		return "", l.withCause(ctx, err)
	}
	ended, err := le.hold.HandOver(ctx, exporting, errHandedOver, func(ctx context.Context) error { return le.handOver(ctx, id) })
	if !ended {
		err = context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	if err != nil {
		l.endRow(id, valid)
		return "", err
	}
	return text, nil
}

// handOver moves the name to the lease of a ticket. A move that comes late, after the adoption, finds another
// token.
func (le *Lease) handOver(ctx context.Context, id []byte) error {
	l, ls := le.locker, le.attachedTo().lease
	if held, cause := le.heldUntilNow(ls); !held { //nolint:contextcheck // the lock has a context of its own
		return errors.Join(le.release(ctx), cmp.Or(cause, errLate))
	}
	there, unsure := false, false
	err := retry(bound.WithValuesOf(l.closing, ctx), releaseTimeout, func(ctx context.Context) (err error) {
		there, err = l.store.move(ctx, le.Name(), le.token, ls.id, id)
		unsure = unsure || err != nil && !outcomeKnown(err)
		return err
	})
	switch {
	case err != nil && !unsure: // it is where it was
		return errors.Join(fmt.Errorf("released instead: %w", err), le.release(ctx))
	case err != nil && l.closing.Err() == nil:
		le.leaveOrphans(0, ls)
		err = fmt.Errorf("not confirmed, and given back in the background: %w", err)
	case err != nil:
		err = sqllock.ErrClosed
	case !there:
		err = errTaken
	}
	ls.detach(le)
	le.leave()
	return err
}

// endRow deletes, in the background, the row of a lease that is not one of a term.
func (l *Locker) endRow(id []byte, within time.Duration) {
	_ = l.start(func() { // otherwise it expires
		_ = retry(l.closing, within, func(ctx context.Context) error {
			_, err := l.store.change(ctx, &l.store.work, endLease, row{id})
			return err
		})
	})
}
