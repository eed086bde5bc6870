package leasetable

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/schema"
)

// mostPatient is how many of a Locker's statements may wait at a time for rows that somebody keeps locked. With the two that take
// and free a name on its own (see sharing) they leave a connection to those that wait for no row: so a name that
// somebody keeps locked holds up nobody who asks for another one.
const mostPatient = workConns - 3

// patience is for who runs a statement that may wait for a row.
type patience chan struct{}

func newPatience() patience { return make(patience, mostPatient) }

// take waits until a statement may wait for a row. Then done is to be called when that has ended.
func (p patience) take(ctx context.Context) (done func(), err error) {
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-ctx.Done():
		err := fmt.Errorf("%w: %d statements wait for rows that are kept locked", errSlow, mostPatient)
		return nil, &dbError{err: err, answered: true, transient: true}
	}
}

// full reports whether a statement would have to wait until it may.
func (p patience) full() bool { return len(p) == cap(p) }

// patiently waits until st may be run on p.
func (s *store) patiently(ctx context.Context, p *pool, st statement) (done func(), err error) {
	waits := p == &s.work && s.dialect != schema.SQLite
	switch st {
	case acquire, acquireFree, acquireKnown, release, releaseAsync, releaseKnown, releaseKnownAsync: // see sharing
		waits = false
	case grant, want, wantNoMore, clearPlace: // a new row, or none that is locked
		waits = false
	}
	if !waits {
		return func() {}, nil
	}
	return s.patience.take(ctx)
}

// again returns one for names that it was tried with before.
func (s *store) again(one func(context.Context, *part) (taken, error)) func(context.Context, *part) (taken, error) {
	return func(ctx context.Context, p *part) (taken, error) {
		done, err := s.patience.take(ctx)
		if err != nil {
			return taken{}, err
		}
		defer done()
		return one(ctx, p)
	}
}
