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

// isReleasedLater reports whether the Locker has released the lock after all: it repeats a release that the database has
// not confirmed. To end the Locker before that would free a name whose minimum hold (--at-least) has not passed. Without
// one, isReleasedLater does not wait. It waits until a signal comes, or for a TTL: the lease is over then, unless the
// database can be used, and the release is repeated soon.
func (r *run) isReleasedLater(ctx context.Context, l database.Locker, lease *leasetable.Lease, received *process.Signals) bool {
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
		if err == nil && (!held || holder.Owner == "" || holder.Token != lease.Token()) { // a name that is kept has no owner
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}
