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
// wait for no row lock: see chapter 6 of docs/design.md.
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

// row is an argument of a statement that says for which row, or rows, the statement may wait: mostly the key of one.
type row struct{ key any }

// limitRowWait waits until st may run; see rowWaitLimiter.acquire. A statement may wait for a row lock, and is limited, if
// and only if one of its arguments is a row.
func (s *database) limitRowWait(ctx context.Context, st Statement, args []any) (done func(), err error) {
	var keys []any
	for _, arg := range args {
		if r, ok := arg.(row); ok {
			keys = append(keys, r.key)
		}
	}
	if keys == nil || s.dialect == schema.SQLite { // SQLite locks no rows
		return func() {}, nil
	}
	return s.rowWaits.acquire(ctx, func() bool { return s.unlocked(ctx, st, keys) })
}

// unlocked reports whether no session has locked the row for which st may wait. On PostgreSQL the row of a name has to
// exist, because a row that is just being inserted is not visible.
func (s *database) unlocked(ctx context.Context, st Statement, keys []any) bool {
	find := unlocked
	switch st {
	case insert: // it waits for a row that is just being inserted for a moment only (see insert.sql)
		return true
	case forcePermits: // it waits for other rows, too
		return false
	case expire, expireUnchanged:
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
