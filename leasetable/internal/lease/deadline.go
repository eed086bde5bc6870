package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
)

// margin is how long before the possible expiry of the lease the holder stops trusting it.
func (ls *Lease) margin() time.Duration { return ls.TTL / 6 }

// Why a lease is over.
var (
	errLate     = fmt.Errorf("%w: no renewal was confirmed in time", sqllock.ErrExpired)
	errOutlived = fmt.Errorf("%w: by the database's clock", sqllock.ErrExpired)
	errEnded    = fmt.Errorf("%w: its lease was ended by the database's clock or by somebody else", sqllock.ErrLost)
)

// trustedNow reports whether the database is sure to keep the lease at this moment (I5). If the lease has ended, it
// returns why.
func (ls *Lease) trustedNow() (bool, error) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	return ls.over() == nil, ls.cause
}

// over returns why the database is not sure to keep the lease at this moment, or nil. The caller holds mu.
func (ls *Lease) over() error {
	if ls.cause == nil && !clock.Now().Before(ls.trusted) {
		return errLate
	}
	return ls.cause
}

// setTimers sets the timers by trusted. The caller holds mu.
func (ls *Lease) setTimers() {
	ls.deadline.Reset(ls.trusted)
	ls.warning.Reset(clock.Until(ls.trusted) - ls.TTL/4)
}

// warn reports that the locks will end soon unless a renewal is confirmed. A renewal is overdue then.
func (ls *Lease) warn() {
	ls.mu.Lock()
	left, locks := clock.Until(ls.trusted), len(ls.locks)
	ls.mu.Unlock()
	if locks > 0 && left > 0 {
		ls.keeper.events.Expiring(context.Background(), left, locks)
	}
}

// sure returns how long the database is sure to keep the lease without another renewal.
func (ls *Lease) sure() time.Duration {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.cause != nil {
		return 0
	}
	return max(0, clock.Until(ls.trusted))
}

// expire ends the lease at its deadline.
func (ls *Lease) expire() {
	if trusted, _ := ls.trustedNow(); !trusted {
		ls.finish(ls.Renewals.late())
	}
}

// finish ends the lease, and cancels the context of every lock (I1). Only the first call counts.
func (ls *Lease) finish(cause error) {
	ls.mu.Lock()
	if ls.cause != nil {
		ls.mu.Unlock()
		return
	}
	ls.cause = cause
	ls.deadline.Stop()
	ls.warning.Stop()
	for h := range ls.locks {
		h.Hold.End(cause)
		if h.MinHold > 0 && errors.Is(cause, sqllock.ErrClosed) && errors.Is(h.over(), sqllock.ErrReleased) {
			ls.Orphans.owe(h)
		}
		h.position.leave()
	}
	clear(ls.locks)
	clear(ls.permits)
	close(ls.ended)
	ls.mu.Unlock()
	ls.keeper.forget(ls, true)
}
