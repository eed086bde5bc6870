package store

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// mayWaitForRows returns how many statements of a Locker may wait for row locks at a time. Together with the two
// statements that acquire and release a single name (see coalesce.Queue) they leave one connection to statements that
// wait for no row lock. So a name whose row stays locked delays no acquisition of another name, unless the Locker has
// fewer than four connections for its work.
func mayWaitForRows(most conn.Limit) int { return max(1, most.Work()-3) }

// firstAsked is the time before the first check whether the row is locked at all.
const firstAsked = 50 * time.Millisecond

// rowWaitLimiter limits how many statements wait for row locks at a time.
type rowWaitLimiter struct {
	waits chan struct{} // has one element for each statement that may wait
	asks  chan struct{} // has one element for a statement whose row is not locked, or whose row is being checked
}

func newRowWaitLimiter(most int) rowWaitLimiter {
	return rowWaitLimiter{waits: make(chan struct{}, most), asks: make(chan struct{}, 1)}
}

// acquire waits until the statement may wait for a row lock, or until unlocked reports that it need not wait (I38). It
// calls unlocked now and then, at growing intervals. The caller calls done when the statement has ended. When ctx ends,
// the error matches ErrSlow, and nothing was sent.
func (p rowWaitLimiter) acquire(ctx context.Context, unlocked func() bool) (done func(), err error) {
	timer := time.NewTimer(firstAsked)
	defer timer.Stop()
	var asks chan struct{} // nil until the next check is due
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
			err := fmt.Errorf("%w: %d statements wait for rows that are kept locked", dberr.ErrSlow, cap(p.waits))
			return nil, &dberr.Error{Err: err, OutcomeKnown: true, Transient: true}
		}
	}
}

// saturated reports whether a statement would have to wait until it may wait for a row lock.
func (p rowWaitLimiter) saturated() bool { return len(p.waits) == cap(p.waits) }

// row is an argument of a statement that is the key of the row for which the statement may wait.
type row struct{ key any }

// limitRowWait waits until st may run on p; see rowWaitLimiter.acquire. Statements that wait for no row lock, and those
// whose number a queue limits, may run at once.
func (s *Database) limitRowWait(ctx context.Context, p *conn.Pool, st Statement, args ...any) (done func(), err error) {
	waits := p == s.Work && s.dialect != schema.SQLite
	switch st {
	case acquire, acquireFree, release, releaseAsync: // a queue limits their number
		waits = false
	case openLease, noteWaiter, removeWaiter, clearPermit: // they insert a new row, or skip locked rows
		waits = false
	}
	if !waits {
		return func() {}, nil
	}
	return s.mayWait(ctx, st, args...)
}

// mayWait waits until st may wait for a row lock, or need not wait; see rowWaitLimiter.acquire.
func (s *Database) mayWait(ctx context.Context, st Statement, args ...any) (done func(), err error) {
	return s.rowWaits.acquire(ctx, func() bool { return s.unlocked(ctx, st, args) })
}

// unlocked reports whether no session has locked the row for which st may wait. On PostgreSQL the row of a name has to
// exist, because a row that is just being inserted is not visible. The statement insert counts as unlocked, because it
// waits for such a row for a moment only (see insert.sql).
func (s *Database) unlocked(ctx context.Context, st Statement, args []any) bool {
	var keys []any
	for _, arg := range args {
		if r, ok := arg.(row); ok {
			keys = append(keys, r.key)
		}
	}
	if keys == nil || s.dialect == schema.SQLite { // SQLite locks no rows
		return st == insert
	}
	find := unlocked
	switch st {
	case expire, expireUnchanged, endLease:
		find = unlockedLease
	case releasePermit:
		find = unlockedPermit
	}
	rows, err := s.query(ctx, find, keys...)
	if err != nil {
		return false
	}
	defer rows.Close()
	return rows.Next()
}
