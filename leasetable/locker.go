package leasetable

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/internal/waitqueue"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/schema"
)

// minTTL leaves time for some round trips to a renewal, which is due after a third of the TTL.
const minTTL = 200 * time.Millisecond

// Locker acquires leases. Close it when it is no longer needed.
type Locker struct {
	store          *store.Store
	dialect        schema.Dialect
	tables         schema.Tables
	ttl            time.Duration
	durable        bool // releases are committed as durably as acquisitions
	owner          string
	host           string
	events         observe.Sink
	queue          waitqueue.Queue[string, handoff]         // one claim on a name at a time
	opening        waitqueue.Queue[time.Duration, struct{}] // one new lease of a TTL at a time
	notifier       notifier
	yields         yields
	claimingPermit waitqueue.Queue[string, struct{}] // one claim on a permit of a name at a time
	outage         trouble.Trouble                   // with the database
	moves          waitqueue.Queue[*Lease, struct{}] // one move of a lock at a time

	clearing atomic.Bool // a goroutine clears dead permits

	closing context.Context //nolint:containedctx // ends, with ErrClosed, when Close is called
	close   context.CancelCauseFunc
	running sync.WaitGroup // leases and claims; added to under mu while open
	idle    chan func()    // idle goroutines receive from it
	resting atomic.Int32   // how many goroutines are idle

	mu     sync.Mutex
	leases map[time.Duration]*lease // guarded by mu: the lease of each TTL that takes new locks
	all    map[*lease]struct{}      // guarded by mu: every lease that has not ended
}

var _ sqllock.Acquirer[*Lease] = (*Locker)(nil)

// Option configures a Locker.
type Option func(*Locker)

// WithTTL sets how long a lock outlives its last renewal, unless an acquisition sets its own TTL (sqllock.WithTTL). The
// default is 15 s, the minimum 200 ms. A shorter TTL frees the locks of a dead process sooner. It also loses the locks
// of a process that merely stalls or has to reconnect. The TTL should be at least 30 round trips.
func WithTTL(ttl time.Duration) Option {
	return func(l *Locker) { l.ttl = ttl }
}

// WithOwner sets the Locker's name in the table, for people to read. It is cut to 255 bytes. The default is the name of
// the program.
func WithOwner(owner string) Option {
	return func(l *Locker) { l.owner = owner }
}

// WithLogger makes the Locker log to logger. At level Warn it logs that a lock was lost or expired, or will expire
// soon, and that an Elector campaigns again. At level Debug it logs everything else that happens to locks. Without it
// nothing is logged.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Locker) { l.events.Logger = logger }
}

// WithHook makes the Locker call hook with each event of its locks, after it happened. hook is called from many
// goroutines, concurrently, and occasionally after Close. The goroutine that calls hook waits for it, also one that
// renews: a slow hook loses locks, and one that uses the Locker or panics can hang it. Pass slow work to a channel.
func WithHook(hook func(context.Context, sqllock.Event)) Option {
	return func(l *Locker) { l.events.Hook = hook }
}

// WithDurableRelease makes releases on PostgreSQL commit as the session is configured, as acquisitions always do.
// Without it they commit with synchronous_commit off, unless a pooler, or a driver other than pgx, is in between. A
// crash or a failover of the server can then forget the latest releases. The Locker frees those names when it
// reconnects. If its process has ended meanwhile, they are free when they expire.
func WithDurableRelease() Option {
	return func(l *Locker) { l.durable = true }
}

// WithTables sets the prefix and the schema of the tables.
func WithTables(t schema.Tables) Option {
	return func(l *Locker) { l.tables = t }
}

// WithDialect sets the dialect of the database for an unknown driver, such as one that wraps another.
func WithDialect(d schema.Dialect) Option {
	return func(l *Locker) { l.dialect = d }
}

func newLocker(c driver.Connector, opts []Option) (*Locker, error) {
	l := &Locker{
		ttl:    15 * time.Second,
		owner:  filepath.Base(os.Args[0]),
		leases: make(map[time.Duration]*lease),
		all:    make(map[*lease]struct{}),
		idle:   make(chan func()),
	}
	for _, opt := range opts {
		opt(l)
	}
	if err := checkTTL(l.ttl); err != nil {
		return nil, err
	}
	if l.dialect == "" {
		d, err := dialectOf(c.Driver())
		if err != nil {
			return nil, err
		}
		l.dialect = d
	}
	store, err := store.New(c, l.dialect, l.tables, l.hand)
	if err != nil {
		return nil, err
	}
	store.Durable = l.durable
	l.store = store
	l.owner = truncate(l.owner)
	host, _ := os.Hostname() // for people to read; a host without a name shows none
	l.host = truncate(host)
	l.events.Locker = l.identity
	l.closing, l.close = context.WithCancelCause(context.Background())
	if store.MayNotify() {
		l.notifier = notifier{store: store, start: l.start, closing: l.closing, pause: subscribedPause}
	}
	store.Lend(l.renewalNeeds, l.notifier.giveUp)
	return l, nil
}

// identity returns the identity of l for its events.
func (l *Locker) identity() event.Locker {
	return event.Locker{Kind: "lease", System: l.store.System(), Owner: l.owner}
}

// truncate fits text into the tables: valid UTF-8 without zero bytes, at most 255 bytes.
func truncate(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), 255)], "")
}

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL {
		return fmt.Errorf("leasetable: TTL %v is too short; it must be at least %v", ttl, minTTL)
	}
	return nil
}

// Close ends the Locker's leases and so frees their locks. The contexts of the locks end with sqllock.ErrClosed, and
// calls under way fail with it. If the database does not answer within a few seconds, the locks are free when they
// expire. Closing again is harmless.
func (l *Locker) Close() error {
	l.close(sqllock.ErrClosed)
	for _, ls := range l.everyLease() {
		ls.finish(sqllock.ErrClosed)
	}
	l.running.Wait()
	return l.store.Close()
}

// everyLease returns the leases that have not ended.
func (l *Locker) everyLease() []*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.all))
}

// RenewalNeeds returns what the leases need of the connection for renewals.
func (l *Locker) renewalNeeds() (k conn.RenewalNeeds) {
	for _, ls := range l.everyLease() {
		sure, pace := ls.sureBy()
		if k.TTL == 0 {
			k.Sure, k.TTL = sure, ls.ttl
		}
		k.Sure, k.TTL, k.Pace = min(k.Sure, sure), min(k.TTL, ls.ttl), max(k.Pace, pace)
	}
	return k
}

func (l *Locker) inspect(ctx context.Context, name string, opts ...sqllock.Option) (store.State, error) {
	_, err := choose(opts)
	if err := errors.Join(lockname.Check(name), err); err != nil {
		return store.State{}, &sqllock.OpError{Op: "inspect", Name: name, Err: err}
	}
	ctx, cancel := l.bound(ctx)
	defer cancel()
	state, err := l.store.Read(ctx, name)
	if err != nil {
		return store.State{}, &sqllock.OpError{Op: "inspect", Name: name, Err: l.withCause(ctx, err)}
	}
	return state, nil
}

// bound returns a context that also ends, with ErrClosed, when the Locker is closed.
func (l *Locker) bound(ctx context.Context) (context.Context, func()) {
	return bound.CancelWith(ctx, l.closing)
}

// withCause prefixes err with the cause of ctx's end, if ctx has ended. Otherwise it diagnoses why an answer did not
// come. It checks closing itself, since a context that bound made ends some time after Close began.
func (l *Locker) withCause(ctx context.Context, err error) error {
	var cause error
	switch {
	case l.closing.Err() != nil:
		cause = sqllock.ErrClosed
	case bound.Ended(ctx):
		cause = context.Cause(ctx)
	}
	if cause == nil {
		return l.store.Diagnose(ctx, err)
	}
	return bound.WithCause(cause, err)
}

// hand runs f, which ends soon, in an idle goroutine, and if there is none in a new one. A new goroutine begins with a
// small stack. To grow it in a driver costs more than the rest of a claim.
func (l *Locker) hand(f func()) error {
	select {
	case l.idle <- f:
		return nil
	default:
	}
	return l.start(func() {
		f()
		defer l.resting.Add(-1)
		for l.resting.Add(1) <= conn.WorkConns {
			select {
			case f = <-l.idle:
			case <-l.closing.Done():
				return
			}
			l.resting.Add(-1)
			f()
		}
	})
}

// start runs f in a goroutine, and Close waits for it. If the Locker is closed it returns ErrClosed.
func (l *Locker) start(f func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closing.Err() != nil {
		return sqllock.ErrClosed
	}
	l.running.Go(f)
	return nil
}
