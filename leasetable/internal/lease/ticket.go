package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/hold"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// errHandedOver is the cause with which the context of an exported lock ends.
var errHandedOver = fmt.Errorf("%w: it was handed over by a ticket", sqllock.ErrReleased)

// Export ends the lock and moves its name to a new lease with this id, which nobody renews. After an error, or if it does not
// return because a hook or a driver panics, that lease ends: nobody has the ticket (I28). Close waits for that. The lock is over
// then, or held as before. The row of that lease is committed before (I7).
func (h *Held) Export(ctx context.Context, id []byte, valid time.Duration) error {
	k := h.Keeper
	ctx, cancel := k.Bound(ctx)
	defer cancel()
	still, err := h.beginSettled(ctx)
	if err != nil {
		return k.WithCause(ctx, err)
	}
	defer k.moves.Done(h)
	of := k.leaseRow(id, valid)
	of.Ticket = true
	if _, err := k.Store.OpenLease(ctx, of, dberr.AttemptTimeout); err != nil {
		return k.WithCause(ctx, err)
	}
	exported := make(chan bool, 1)
	err = k.Start(func() { //nolint:contextcheck // it outlives its caller
		if !<-exported {
			k.endTicket(id, valid)
		}
	})
	if err != nil { // the Locker is closed, and the row expires
		return err
	}
	done := false
	defer func() { exported <- done }()
	ended, err := h.Hold.HandOver(ctx, "export", errHandedOver, func(ctx context.Context) error { return still.handOver(ctx, id) })
	if !ended {
		return h.over() //nolint:contextcheck // the lock has a context of its own
	}
	done = err == nil
	return err
}

// handOver moves the name to the lease of a ticket. A move that arrives after the adoption finds another token, and
// does nothing.
func (h settled) handOver(ctx context.Context, id []byte) error {
	k, ls := h.Keeper, h.AttachedTo().Lease
	if e := endingOf(h.Held, ls); !e.trusted { //nolint:contextcheck // the lock has a context of its own
		return errors.Join(h.Free(ctx), cmp.Or(e.cause, errLate))
	}
	there, unknown, returned := false, false, false
	defer func() {
		if !returned { // a driver panicked
			h.leaveOrphans(0, ls)
			ls.detach(h.Held)
			h.position.leave()
		}
	}()
	err := dberr.Retry(bound.WithValuesOf(k.Closing, ctx), releaseTimeout, func(ctx context.Context) (err error) {
		there, err = k.Store.Move(ctx, h.Name, h.Token, ls.ID, id)
		unknown = unknown || err != nil && !dberr.OutcomeKnown(err)
		return err
	})
	returned = true
	switch {
	case err != nil && !unknown: // the name was not moved
		if unconfirmed := h.Free(ctx); unconfirmed != nil {
			return errors.Join(fmt.Errorf("released instead: %w", err), unconfirmed)
		}
		return &hold.FreedError{Err: err}
	case err != nil && k.Closing.Err() == nil:
		h.leaveOrphans(0, ls)
		err = fmt.Errorf("not confirmed, and given back in the background: %w", err)
	case err != nil:
		err = sqllock.ErrClosed
	case !there:
		err = errTaken
	}
	ls.detach(h.Held)
	h.position.leave()
	return err
}

// EndTicket deletes the lease row of a ticket in the background.
func (k *Keeper) EndTicket(id []byte, within time.Duration) {
	_ = k.Start(func() { k.endTicket(id, within) }) // if the Locker is closed the row expires
}

// endTicket deletes the lease row of a ticket. If it fails the row expires.
func (k *Keeper) endTicket(id []byte, within time.Duration) {
	ctx, cancel := k.untilClosed()
	defer cancel()
	_ = dberr.Retry(ctx, within, func(ctx context.Context) error {
		_, err := k.Store.ExpireUnchanged(ctx, id, 0) // nobody renews it
		return err
	})
}
