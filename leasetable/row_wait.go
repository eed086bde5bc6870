package leasetable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// mostPatient is how many of a Locker's statements may wait at a time for rows that somebody keeps locked. With the two that take
// and free a name on its own (see sharing) they leave a connection to those that wait for no row: so a name that
// somebody keeps locked holds up nobody who asks for another one.
const maxRowWaits = workConns - 3

// firstAsked is when it is asked first whether a statement would wait at all.
const firstAsked = 50 * time.Millisecond

// patience is for who runs a statement that may wait for a row.
type rowWaitLimiter struct {
	waits chan struct{} // has room for who may wait
	asks  chan struct{} // has room for one who need not, or asks
}

func newRowWaitLimiter() rowWaitLimiter {
	return rowWaitLimiter{waits: make(chan struct{}, maxRowWaits), asks: make(chan struct{}, 1)}
}

// take waits until a statement may wait for a row, or need not, as unlocked reports, which is asked now and
// then, ever less often. Then done is to be called when the statement has ended.
func (p rowWaitLimiter) acquire(ctx context.Context, unlocked func() bool) (done func(), err error) {
	timer := time.NewTimer(firstAsked)
	defer timer.Stop()
	var asks chan struct{} // nil until it is time to ask
	for pause := 2 * firstAsked; ; {
		select {
		case p.waits <- struct{}{}:
			return func() { <-p.waits }, nil
		case <-timer.C:
			asks = p.asks
		case asks <- struct{}{}:
			if unlocked() {
				return func() { <-p.asks }, nil
			}
			<-p.asks
			asks = nil
			timer.Reset(pause)
			pause *= 2
		case <-ctx.Done():
			err := fmt.Errorf("%w: %d statements wait for rows that are kept locked", errSlow, maxRowWaits)
			return nil, &dbError{err: err, outcomeKnown: true, transient: true}
		}
	}
}

// full reports whether a statement would have to wait until it may.
func (p rowWaitLimiter) saturated() bool { return len(p.waits) == cap(p.waits) }

// row is an argument of a statement that says which row it may wait for.
type row struct{ key any }

// patiently waits until st may be run on p.
func (s *store) limitRowWait(ctx context.Context, p *pool, st statement, args ...any) (done func(), err error) {
	waits := p == &s.work && s.dialect != schema.SQLite
	switch st {
	case acquire, acquireFree, acquireKnown, release, releaseAsync, releaseKnown, releaseKnownAsync: // see sharing
		waits = false
	case openLease, noteWaiter, removeWaiter, clearPermit: // a new row, or none that is locked
		waits = false
	}
	if !waits {
		return func() {}, nil
	}
	return s.mayWait(ctx, st, args...)
}

// mayWait waits until st may wait for a row, or need not; see patience.take.
func (s *store) mayWait(ctx context.Context, st statement, args ...any) (done func(), err error) {
	return s.rowWaits.acquire(ctx, func() bool { return s.unlocked(ctx, st, args) })
}

// unlocked reports whether nobody has the row locked that st may wait for. On PostgreSQL that of a name has to be there: one that is
// just being inserted cannot be seen. Who inserts it waits for a moment only.
func (s *store) unlocked(ctx context.Context, st statement, args []any) bool {
	var keys []any
	for _, arg := range args {
		if r, ok := arg.(row); ok {
			keys = append(keys, r.key)
		}
	}
	if keys == nil || s.dialect == schema.SQLite { // which locks no rows
		return st == insert
	}
	find := unlocked
	switch st {
	case expire, expireUnchanged, endLease:
		find = unlockedLease
	case releasePermit:
		find = unlockedPermit
	}
	rows, err := s.query(ctx, &s.work, find, keys...)
	if err != nil {
		return false
	}
	defer rows.Close()
	return rows.Next()
}

// again returns one for names that it was tried with before.
func (s *store) retry(one func(context.Context, *request) (result, error)) func(context.Context, *request) (result, error) {
	return func(ctx context.Context, req *request) (result, error) {
		done, err := s.mayWait(ctx, acquire, row{[]byte(req.name)})
		if err != nil {
			return result{}, err
		}
		defer done()
		return one(ctx, req)
	}
}
