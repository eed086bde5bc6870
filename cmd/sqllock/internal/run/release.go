package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/leasetable"
)

// askEvery is how often isReleasedLater asks.
const askEvery = time.Second / 2

// release releases the lock. Of an error other than sqllock.ErrLost and ErrExpired it says when the lock is free.
func (r *run) release(ctx context.Context, l database.Locker, lock sqllock.Lock, taken time.Time, received *process.Signals) error {
	err := lock.Release(ctx)
	if err == nil || lost(err) {
		return err
	}
	if lease, ok := lock.(*leasetable.Lease); ok {
		var op *sqllock.OpError
		if errors.As(err, &op) && errors.Unwrap(op.Err) != nil {
			err = errors.Unwrap(op.Err) // without the words that the release is retried, which ends with sqllock
		}
		if r.atLeast > 0 {
			r.warn("the release is repeated, since it was not confirmed", err)
			if r.isReleasedLater(ctx, l, lease, taken, received) {
				return nil
			}
		}
	}
	free := max(r.ttl, r.atLeast-time.Since(taken)).Round(time.Second)
	return fmt.Errorf("the release of lock %q was not confirmed; it is free %v later at the latest: %w", r.name, free, err)
}

// isReleasedLater reports whether the Locker has released the lock after all, with its minimum hold (--at-least): it repeats
// a release that the database has not confirmed. To end the Locker before that would free the name at once. isReleasedLater
// waits until a signal comes, or for a TTL: the lease is over then, unless the database can be used, and the release is
// repeated soon.
func (r *run) isReleasedLater(ctx context.Context, l database.Locker, lease *leasetable.Lease, taken time.Time, received *process.Signals) bool {
	ctx, done := received.Interrupting(ctx)
	defer func() { _ = done() }() // the signal ends the wait, and nothing else
	ctx, cancel := context.WithTimeout(ctx, r.ttl)
	defer cancel()
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		holder, held, err := l.Holder(ctx, r.name)
		switch {
		case err != nil:
		case held && holder.Owner == "": // it is kept
			return true
		case !held || holder.Token != lease.Token(): // it was, or the lease has expired
			return time.Since(taken) >= r.atLeast
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
