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

// askEvery is how often releasedLater asks.
const askEvery = time.Second / 2

// release releases the lock. Of an error other than sqllock.ErrLost and ErrExpired it says when the lock is free.
func (r *run) release(ctx context.Context, l database.Locker, lock sqllock.Lock, taken time.Time, received *process.Signals) error {
	received.Discard() // one of them would end a release that is repeated
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
			switch later := r.releasedLater(ctx, l, lease, taken, received); {
			case errors.Is(later, errNotKept):
				return fmt.Errorf("%w: %w", later, err)
			case later == nil:
				return nil
			}
		}
	}
	free := (max(r.ttl, r.atLeast-time.Since(taken)) + time.Second - 1).Truncate(time.Second)
	return fmt.Errorf("the release of lock %q was not confirmed; it is free within %v: %w", r.name, free, err)
}

var (
	errNotKept      = errors.New("the lock was not kept for --at-least: its lease ended before its release was confirmed")
	errNotConfirmed = errors.New("not confirmed")
)

// releasedLater returns nil if the Locker has released the lock after all, with its minimum hold (--at-least): it repeats a
// release that the database has not confirmed. To end the Locker before that would free the name at once. releasedLater
// waits until a signal comes, or for a TTL: the lease is over then, unless the database can be used, and the release is
// repeated soon.
func (r *run) releasedLater(ctx context.Context, l database.Locker, lease *leasetable.Lease, taken time.Time, received *process.Signals) error {
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
			return nil
		case held && holder.Token == lease.Token(): // not yet
		case time.Since(taken) < r.atLeast:
			return errNotKept
		default:
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errNotConfirmed
		}
	}
}
