package leasetable

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Adopt acquires the lock that a ticket of [Lease.Export] hands over, in this process or another. The lock gets the
// next token, which fences off what is left of its old holder. Adopt does not wait. The options are those of an
// acquisition. Without [WithMetadata] the metadata stays as it is.
//
// The error matches ErrLost if the ticket was adopted before, or if it has expired and the name was acquired or
// released by force since. The ticket is worthless then. If the text is not a ticket, the error says so. After any
// error nothing is held. If the outcome is unknown, as when ctx ends meanwhile, Adopt gives back in the background
// what it may have acquired. After any other error the ticket is still good.
//
// Adopt bypasses the wait queue: the goroutines of this Locker that wait for the name go on waiting, like those of
// other processes.
func (l *Locker) Adopt(ctx context.Context, ticket string, opts ...sqllock.Option) (*Lease, error) {
	const op = "adopt"
	t, err := readTicket(ticket)
	if err != nil {
		return nil, &sqllock.OpError{Op: op, Name: string(t.Name), Err: err}
	}
	return l.acquire(ctx, op, string(t.Name), opts, func(a *attempt) (*Lease, error) { return a.adopt(t) }) //nolint:contextcheck // a has it
}

// adopt does not enter the wait queue of the name, whose head may be a goroutine of this process that polls. The
// queue ensures that a name and a lease id identify one claim. This claim has that from a dedicated lease.
func (a *attempt) adopt(from ticket) (*Lease, error) {
	if a.permit() {
		return nil, errPermit
	}
	a.leaveQueue, a.dedicated = func() {}, true
	ls, err := a.openDedicated(a.ctx, a.choice.ttl)
	if err != nil {
		return nil, err
	}
	lease, err := a.claimOnLease(ls, func(ctx context.Context) outcome { return a.adoptOn(ctx, ls, from) })
	if err != nil {
		return nil, err
	}
	a.endRow(from.Lease, dberr.ConflictTimeout)
	return lease, nil
}

// adoptOn repeats the statement until it is answered: a repetition finds what the first attempt did.
func (a *attempt) adoptOn(ctx context.Context, ls *lease, from ticket) (o outcome) {
	o.err = dberr.Retry(ctx, dberr.ConflictTimeout, func(ctx context.Context) (err error) {
		o.token, err = a.store.Adopt(ctx, from.held(), ls.id, a.metadata)
		o.unknown = o.unknown || err != nil && !dberr.OutcomeKnown(err)
		return err
	})
	if o.err == nil {
		o.unknown = false
		if o.token == 0 {
			o.err = errUsed
		}
	}
	return o
}

var errUsed = fmt.Errorf("%w: the ticket was adopted before, or has expired and the name was taken or freed", sqllock.ErrLost)
