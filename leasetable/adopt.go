package leasetable

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
)

// Adopt takes on the lock that a ticket of [Lease.Export] hands over, in this process or another, with the next
// token: what is left of its old holder is fenced off. It does not wait. The options are those of an acquisition;
// without [WithMetadata] the metadata stays as it is.
//
// ErrLost says that the ticket was adopted before, or has expired and somebody took the name, or freed it by force: it
// is worth nothing any more. Of a text that is no ticket the error says so. After any error nothing is held. If
// it is not known whether the adoption was carried out, as when ctx ends meanwhile, what it may have taken is
// given back in the background; otherwise the ticket is still good.
//
// Adopt bypasses the wait queue: a goroutine of this Locker that waits for the name waits on, as one of another process does.
func (l *Locker) Adopt(ctx context.Context, ticket string, opts ...sqllock.Option) (*Lease, error) {
	const op = "adopt"
	t, err := readTicket(ticket)
	if err != nil {
		return nil, &sqllock.OpError{Op: op, Name: string(t.Name), Err: err}
	}
	return l.acquire(ctx, op, string(t.Name), opts, func(a *attempt) (*Lease, error) { return a.adopt(t) }) //nolint:contextcheck // a has it
}

// adopt takes no turn of the name, which one may have in this process who polls for it. What that protects, the
// meaning of a name and a lease id together, this claim has by a lease of its own.
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
	a.endRow(from.Lease, conflictTimeout)
	return lease, nil
}

// adoptOn repeats the statement until it is answered: the second time it finds what the first one did.
func (a *attempt) adoptOn(ctx context.Context, ls *lease, from ticket) (o outcome) {
	o.err = retry(ctx, conflictTimeout, func(ctx context.Context) (err error) {
		o.token, err = a.store.adopt(ctx, from, ls.id, a.metadata)
		o.unknown = o.unknown || err != nil && !outcomeKnown(err)
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

// adopt takes a name from the lease of a ticket and returns the token, or 0 if it was not there.
func (s *store) adopt(ctx context.Context, from ticket, id, metadata []byte) (token int64, err error) {
	var attach any // null leaves what there is
	if metadata != nil {
		attach = metadata
	}
	args := []any{id, from.Token + 1, attach, row{from.Name}, from.Lease, from.Token}
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		args = append(args, id, from.Token+1)
	}
	return s.claim(ctx, adopt, args...)
}
