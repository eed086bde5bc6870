package leasetable

import (
	"context"
	"errors"
	"sync"

	"github.com/sqllock/sqllock"
)

// TryAcquireAll takes all names, if they are free, by statements that they share, or none. sqllock.AcquireAll uses it, and gives one
// lock that ends as soon as one of them does. The leases are in the order of names, of which none may come twice. On any error nothing
// is held; it joins what was said of each name.
func (l *Locker) TryAcquireAll(ctx context.Context, names []string, opts ...sqllock.Option) ([]*Lease, error) {
	leases := make([]*Lease, len(names))
	errs := make([]error, len(names))
	group := newGroup(len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			m := &member{rendezvous: group}
			defer m.end()
			leases[i], errs[i] = l.acquire(ctx, acquiring, name, opts, func(a *attempt) (*Lease, error) { //nolint:contextcheck // a has it
				a.member = m
				return a.try()
			})
		})
	}
	all.Wait()
	err := errors.Join(errs...)
	if err == nil {
		return leases, nil
	}
	for i, lease := range leases {
		if errs[i] == nil {
			all.Go(func() { _ = lease.Release(ctx) }) // what is not given back is waited for
		}
	}
	all.Wait()
	return nil, err
}

// meet runs p together with the other parts of a TryAcquireAll, and reports whether that was done: one who is not
// awaited goes on by itself. So they share a statement however late some of their goroutines are.
func (s *batcher) joinGroup(ctx context.Context, m *member, req *request) (got result, done bool, err error) {
	req.done = make(chan struct{})
	all, awaited := m.meet(ctx, req)
	switch {
	case !awaited:
		return result{}, false, nil
	case all == nil:
		<-req.done // by the first, whose statement has an end of its own
	default:
		s.runFor(ctx, all)
	}
	return req.result, true, req.err
}

// host runs statements for those who came.
func (s *batcher) runFor(ctx context.Context, reqs []*request) {
	for len(reqs) > 0 {
		var some []*request
		some, reqs = reqs[0].withAlike(reqs[1:])
		s.run(ctx, some, false)
		for _, one := range some {
			close(one.done)
		}
	}
}
