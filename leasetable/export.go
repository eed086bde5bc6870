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
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// errHandedOver is the cause with which the context of an exported lock ends.
var errHandedOver = fmt.Errorf("%w: it was handed over by a ticket", sqllock.ErrReleased)

const exporting = "export"

// Export ends the lock here and returns a ticket. [Locker.Adopt], in any process, acquires the lock with it. Until
// then nobody else can acquire the name, for the time valid from now, which nothing prolongs: 200 ms to a year. If
// that passes without an adoption, the name is free. The Locker may be closed meanwhile.
//
// The lock's context ends with a cause that matches sqllock.ErrReleased. Release does nothing afterwards, and
// WithHoldAtLeast no longer applies. End guarded transactions before, because the export waits for them.
//
// A ticket is good for one adoption. It is printable and at most 4096 bytes long. It contains the name, the token and
// the id of a lease. These are no secret, but everybody who has the ticket can acquire the lock.
//
// If Export returns an error and the lock's context has not ended, the lock is held as before. After any other error
// there is no ticket, and the lock is over. ErrLost and ErrExpired mean that it was over before. Otherwise the lock
// was released instead. If the database did not confirm that, the release goes on in the background, and the name is
// free at the latest when both the time of the ticket and the TTL have passed.
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
	of := l.leaseRow(id, valid)
	of.Ticket = true
	if _, err := l.store.OpenLease(ctx, of, dberr.AttemptTimeout); err != nil {
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

// handOver moves the name to the lease of a ticket. A move that arrives after the adoption finds another token, and
// does nothing.
func (le *Lease) handOver(ctx context.Context, id []byte) error {
	l, ls := le.locker, le.attachedTo().lease
	if held, cause := le.heldUntilNow(ls); !held { //nolint:contextcheck // the lock has a context of its own
		return errors.Join(le.release(ctx), cmp.Or(cause, errLate))
	}
	there, unknown := false, false
	err := dberr.Retry(bound.WithValuesOf(l.closing, ctx), releaseTimeout, func(ctx context.Context) (err error) {
		there, err = l.store.Move(ctx, le.Name(), le.token, ls.id, id)
		unknown = unknown || err != nil && !dberr.OutcomeKnown(err)
		return err
	})
	switch {
	case err != nil && !unknown: // the name was not moved
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

// endRow deletes the lease row of a ticket in the background.
func (l *Locker) endRow(id []byte, within time.Duration) {
	_ = l.start(func() { // if it fails the row expires
		_ = dberr.Retry(l.closing, within, func(ctx context.Context) error {
			return l.store.EndTicket(ctx, id)
		})
	})
}
