package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Adopt acquires the lock that a ticket of [Lease.Export] hands over, in this process or another. The lock gets the
// next token, which fences off what is left of its old holder. Adopt does not wait. The options are those of an
// acquisition. Without [WithMetadata] the metadata stays as it is.
//
// The error matches ErrLost if the ticket was adopted before, if it has expired and the name was acquired or released by
// force since, or a claim on it was given up, or if the new lease ended, or may have been changed, before the answer came.
// The ticket is worthless then. ErrLost also says that the ticket belongs to other tables or another database, where it is
// still good. The error matches [ErrTicket] if ticket is not a ticket, or has another version. After an error the
// caller holds nothing. If the outcome is unknown, as when ctx ends meanwhile, Adopt gives back in the background what it
// may have acquired. After any other error the ticket is still good.
//
// Adopt bypasses the wait queue: the goroutines of this Locker that wait for the name go on waiting, like those of
// other processes.
func (l *Locker) Adopt(ctx context.Context, ticket string, opts ...sqllock.Option) (*Lease, error) {
	const op = "adopt"
	began := time.Now()
	t, err := readTicket(ticket)
	if err != nil {
		err := &sqllock.OpError{Op: op, Name: string(t.Name), Err: err}
		l.events.Asked(ctx, observe.Request{Name: string(t.Name), Began: began}, nil, err)
		return nil, err
	}
	return l.acquire(ctx, op, string(t.Name), opts, func(a *attempt) (*lease.Held, error) { return a.adopt(t) }) //nolint:contextcheck // a has it
}

// adopt does not enter the wait queue of the name, whose head may be a goroutine of this process that polls. The queue
// ensures that a name and a lease id identify one claim. This claim has that from a dedicated lease (I18).
func (a *attempt) adopt(from ticket) (*lease.Held, error) {
	if a.Permit() {
		return nil, lease.ErrPermit
	}
	claim, err := a.Begin(a.ctx, a.name, a.ttl, true)
	if err != nil {
		return nil, err
	}
	c := claiming{a, claim}
	o := c.inBackground(func(ctx context.Context) lease.Outcome { return c.adopt(ctx, from) })
	if a.abandoned {
		return nil, context.Cause(a.ctx)
	}
	lock, _, err := c.accept(o)
	switch {
	case err != nil && o.Token != 0: // the name was moved to a lease that has ended
		return nil, fmt.Errorf("%w: the ticket was used, but its lease had ended, or may have changed, when the answer came: %w", sqllock.ErrLost, err)
	case err != nil:
		return nil, err
	}
	a.EndTicket(from.Lease, dberr.ConflictTimeout)
	return lock, nil
}

// adopt repeats the statement until it is answered: a repetition finds what the first attempt did.
func (a claiming) adopt(ctx context.Context, t ticket) (o lease.Outcome) {
	from := store.Held{Name: a.name, Lease: t.Lease, Token: t.Token}
	o.Err = dberr.Retry(ctx, dberr.ConflictTimeout, func(ctx context.Context) (err error) {
		o.Token, err = a.Store.Adopt(ctx, from, a.c.ID, a.metadata)
		o.Unknown = o.Unknown || err != nil && !dberr.OutcomeKnown(err)
		return err
	})
	if o.Err == nil {
		o.Unknown = false
		if o.Token == 0 {
			o.Err = errUsed
		}
	}
	return o
}

var errUsed = fmt.Errorf("%w: the ticket was adopted before, or has expired and the name was taken or freed, "+
	"or it belongs to other tables", sqllock.ErrLost)
