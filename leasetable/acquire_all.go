package leasetable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// TryAcquireAll acquires all names if they are free, or none. The names share statements. sqllock.AcquireAll uses it, and
// returns one lock that ends as soon as one of the leases does. The leases are in the order of names. No name may occur
// twice. On any error nothing is held, or it is being given back and ends with its lease; the error joins the errors of
// all names. A lease that ends before the last name is acquired is such an error, which can be retried.
func (l *Locker) TryAcquireAll(ctx context.Context, names []string, opts ...sqllock.Option) (got []*Lease, err error) {
	of, _, _ := option.Read[choice](opts)
	parts := new(option.Whole)
	leases, errs := l.tryEach(ctx, names, append(slices.Clip(opts), parts.Part))
	failed := errors.Join(append(errs, endedMeanwhile(leases))...) //nolint:contextcheck // asks the leases' own contexts
	defer func() {
		if got != nil {
			return
		}
		giveBack(ctx, leases) // all or nothing (I39), also if a hook panics
		if !of.Probe {
			parts.Tell(ctx, cmp.Or(failed, errUnreturned))
		}
	}()
	switch {
	case failed != nil:
		return nil, failed
	case of.Whole != nil:
		of.Whole.Join(parts)
	default:
		parts.Tell(ctx, nil)
	}
	return leases, nil
}

// tryEach tries for each of the names in a goroutine of its own.
func (l *Locker) tryEach(ctx context.Context, names []string, opts []sqllock.Option) (leases []*Lease, errs []error) {
	leases = make([]*Lease, len(names))
	errs = make([]error, len(names))
	group := make(rendezvous, len(names))
	// Not by keeper.Start, which a closed Locker refuses: the claims need an answer all the same. Close waits for them, also if
	// their callers have left, and so for the statement.
	go group.serve(l.keeper.Store.Acquires.Serve)
	var all sync.WaitGroup
	for i, name := range names {
		errs[i] = &sqllock.OpError{Op: acquiring, Name: name, Err: errUnreturned}
		all.Go(func() {
			m := &member{rendezvous: group}
			defer m.send(nil)
			leases[i], errs[i] = l.acquire(ctx, acquiring, name, opts, func(a *attempt) (*lease.Held, error) { //nolint:contextcheck // a has it
				a.member = m
				defer m.send(nil) // before a hook, which may take its time
				return a.try()
			})
		})
	}
	all.Wait()
	return leases, errs
}

// giveBack releases those of leases that are not nil. What is not confirmed goes on in the background.
func giveBack(ctx context.Context, leases []*Lease) {
	var all sync.WaitGroup
	for _, lease := range leases {
		if lease != nil {
			all.Go(func() { _ = lease.Release(option.GivingBack(ctx)) })
		}
	}
	all.Wait()
}

// errUnreturned is the error of an acquisition that a hook, a driver or a context has ended by a panic or by runtime.Goexit.
var errUnreturned = errors.New("the call panicked, or ended its goroutine")

// endedMeanwhile returns an error if one of leases, which may be nil, has ended while another name was still waited for,
// because its row was locked. The names may be free, so the error can be retried, unless the Locker was closed.
func endedMeanwhile(leases []*Lease) error {
	for _, lease := range leases {
		if lease == nil {
			continue
		}
		err := lease.held.OverNow()
		if err == nil {
			continue
		}
		if !errors.Is(err, sqllock.ErrClosed) { // the caller had no lock that it could lose
			err = &dberr.Error{Err: fmt.Errorf("the lease ended while other names were acquired: %v", err), Transient: true} //nolint:errorlint // see above
		}
		return &sqllock.OpError{Op: acquiring, Name: lease.Name(), Err: err}
	}
	return nil
}

// joinGroup runs req together with the other requests of a TryAcquireAll, and reports whether it did. A member that the
// group does not wait for, since it has come before or its caller has left, goes on by itself. The group waits for its
// members, so they share a statement however late some of their goroutines are.
func (a claiming) joinGroup(ctx context.Context, req *store.Request) (got store.Result, done bool, err error) {
	call := coalesce.NewCall[*store.Request, store.Result](ctx, req)
	if !a.member.send(call) {
		return store.Result{}, false, nil
	}
	<-call.Done() // the statement has a timeout
	got, err = call.Result()
	return got, true, err
}
