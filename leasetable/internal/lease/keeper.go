package lease

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/waitqueue"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Keeper keeps the leases of a Locker, and the goroutines that work for them.
type Keeper struct {
	Store  *store.Batched
	row    store.LeaseRow // of a new lease, without its ID and TTL
	events observe.Sink

	Queue   waitqueue.Queue[string, Handoff, Word]     // one claim on a name at a time
	opening waitqueue.Tries[time.Duration]             // one new lease of a TTL at a time
	moves   waitqueue.Queue[*Held, struct{}, struct{}] // one move of a lock at a time
	Yields  yields

	renewalTook atomic.Int64 // in ns: the last confirmed renewal, or insert of a lease row, with its wait for the connection

	*runner

	mu           sync.Mutex
	leases       map[time.Duration]*Lease // guarded by mu: the lease of each TTL that takes new locks
	all          map[*Lease]struct{}      // guarded by mu: every lease that has not ended
	readOnly     time.Time                // guarded by mu: when the server was last found to be read-only
	readOnlyFrom time.Time                // guarded by mu: since when it was found to be so, again and again
	leftReadOnly time.Time                // guarded by mu: when LeaveReadOnly last gave up the connections
}

// NewKeeper returns a keeper of leases in s, whose rows have the Owner and Host of row.
func NewKeeper(s store.Store, row store.LeaseRow, events observe.Sink) *Keeper {
	k := &Keeper{
		row:    row,
		events: events,
		runner: newRunner(),
		leases: make(map[time.Duration]*Lease),
		all:    make(map[*Lease]struct{}),
	}
	k.Store = store.Batch(s, k.Hand)
	return k
}

// Close ends the leases, waits for the goroutines, and closes the connections.
func (k *Keeper) Close() error {
	k.stop()
	for _, ls := range k.EveryLease() {
		ls.finish(sqllock.ErrClosed)
	}
	k.running.Wait()
	return k.Store.Close()
}

// EveryLease returns the leases that have not ended.
func (k *Keeper) EveryLease() []*Lease {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Collect(maps.Keys(k.all))
}

// RenewalNeeds returns what the leases need of the connection for renewals.
func (k *Keeper) RenewalNeeds() (needs conn.RenewalNeeds) {
	for _, ls := range k.EveryLease() {
		sure := ls.sure()
		if needs.TTL == 0 {
			needs.Sure, needs.TTL, needs.Pace = sure, ls.TTL, k.pace()
		}
		needs.Sure, needs.TTL = min(needs.Sure, sure), min(needs.TTL, ls.TTL)
	}
	return needs
}

// noteRenewal notes how long a renewal took that was sent at the given time, and ended within limit: the machine may have
// been suspended meanwhile.
func (k *Keeper) noteRenewal(sent time.Time, limit time.Duration) {
	k.renewalTook.Store(int64(min(clock.Since(sent), limit)))
}

// pace returns how long a renewal takes.
func (k *Keeper) pace() time.Duration { return time.Duration(k.renewalTook.Load()) }

// Remaining implements event.Holds.
func (k *Keeper) Remaining() (left time.Duration, held bool) {
	for _, ls := range k.EveryLease() {
		if len(ls.held()) == 0 {
			continue
		}
		if sure := ls.sure(); !held || sure < left {
			left, held = sure, true
		}
	}
	return left, held
}

// Holds reports whether a lock of this Locker has the name.
func (k *Keeper) Holds(name string) bool {
	for _, ls := range k.EveryLease() {
		if slices.ContainsFunc(ls.held(), func(h *Held) bool { return h.Name == name }) {
			return true
		}
	}
	return false
}

// WithCause prefixes err with the cause of ctx's end, if ctx has ended. Otherwise it diagnoses why an answer did not
// come. It checks closing itself, since a context that Bound made ends some time after Close began.
func (k *Keeper) WithCause(ctx context.Context, err error) error {
	var cause error
	switch {
	case k.Closing.Err() != nil:
		cause = sqllock.ErrClosed
	case bound.Ended(ctx):
		cause = context.Cause(ctx)
	}
	if cause == nil {
		return k.Store.Diagnose(ctx, err)
	}
	return bound.WithCause(cause, err)
}

// The least time between two times at which LeaveReadOnly gives up connections is a tenth of the time for which the server
// has been read-only, as far as is known, within these bounds.
const (
	readOnlyPause  = 500 * time.Millisecond
	readOnlyRarest = 5 * time.Second
)

// LeaveReadOnly gives up the connections if err says that they lead to a server that cannot write: after a failover, new
// connections may lead to the new primary.
func (k *Keeper) LeaveReadOnly(err error) {
	if !errors.Is(err, sqllock.ErrReadOnly) {
		return
	}
	k.mu.Lock()
	now := time.Now()
	if now.Sub(k.readOnly) > 2*readOnlyRarest {
		k.readOnlyFrom = now
	}
	k.readOnly = now
	due := now.Sub(k.leftReadOnly) >= min(max(now.Sub(k.readOnlyFrom)/10, readOnlyPause), readOnlyRarest)
	if due {
		k.leftReadOnly = now
	}
	k.mu.Unlock()
	if due {
		k.Store.Reconnect()
	}
}

// wrote notes that the server is not read-only, or not each of those that connections lead to.
func (k *Keeper) wrote() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.readOnly = time.Time{}
}

// Expire deletes the row of a lease that has expired, and reports whether this call deleted it.
func (k *Keeper) Expire(ctx context.Context, id []byte) (expired bool, err error) {
	return dberr.Value(ctx, dberr.RetryConflicts, dberr.ConflictTimeout, func(ctx context.Context) (bool, error) { return k.Store.Expire(ctx, id) })
}
