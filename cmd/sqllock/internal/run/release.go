package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/leasetable"
)

// askEvery is how often isReleasedLater asks.
const askEvery = time.Second / 2

// isReleasedLater reports whether the Locker has released the lock after all, with its minimum hold (--at-least): it repeats
// a release that the database has not confirmed. To end the Locker before that would free the name at once. Without a
// minimum hold, isReleasedLater does not wait. It waits until a signal comes, or for a TTL: the lease is over then, unless
// the database can be used, and the release is repeated soon.
func (r *run) isReleasedLater(ctx context.Context, l database.Locker, lease *leasetable.Lease, taken time.Time, received *process.Signals) bool {
	if r.atLeast == 0 {
		return false
	}
	r.log.LogAttrs(ctx, slog.LevelWarn, "the release is repeated", slog.String("lock", r.name))
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
