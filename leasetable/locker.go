package leasetable

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/trouble"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
	"github.com/sqllock/sqllock/leasetable/internal/permit"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/leasetable/internal/wait"
	"github.com/sqllock/sqllock/schema"
)

// Locker acquires leases. Close it when it is no longer needed.
type Locker struct {
	settings
	keeper *lease.Keeper // of its leases

	turns   *wait.Turns
	stalled wait.Stalled
	permits permit.Claims
	outage  trouble.Trouble // with the database
}

// settings is what options change.
type settings struct {
	dialect schema.Dialect
	tables  schema.Tables
	ttl     time.Duration
	options store.Options
	owner   string
	events  observe.Sink
}

var _ sqllock.Acquirer[*Lease] = (*Locker)(nil)

// Option configures a Locker.
type Option func(*settings)

// WithTTL sets how long a lock outlives its last renewal, unless an acquisition sets its own TTL (sqllock.WithTTL). The
// default is 15 s, the minimum 200 ms. A shorter TTL frees the locks of a dead process sooner. It also loses the locks
// of a process that merely stalls or has to reconnect. The TTL should be at least 30 round trips.
func WithTTL(ttl time.Duration) Option {
	return func(s *settings) { s.ttl = ttl }
}

// WithOwner sets the Locker's name in the table, for people to read. It is cut to 255 bytes. The default is the name of
// the program. Where the encoding of a PostgreSQL database lacks a character of it, or of the host name, acquisitions can
// fail with SQLSTATE 22P05 or 22021: an owner in ASCII fits every encoding.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner = owner }
}

// WithLogger sets the logger of the Locker; nil logs nothing. The default is what slog.Default returns when the Locker is
// made. At the level Warn it logs that locks were lost or will be lost soon, waits that begin to retry because the
// database cannot be used, that an Elector campaigns again, and each outcome of ForceRelease, at Info if there was nothing to
// free. At Info it logs what Purge deleted. At Debug it logs everything else that happens to locks. Names of locks are logged,
// SQL and passwords are not.
func WithLogger(logger *slog.Logger) Option {
	return func(s *settings) { s.events.Logger = logger }
}

// WithHook makes the Locker call hook with each event of its locks, after it happened. hook is called from many
// goroutines, concurrently, and occasionally after Close. The goroutine that calls hook waits for it, also one that
// renews: a slow hook loses locks, and one that uses the Locker can hang it. The Release of a lost lock waits up to a
// second for the hook that is told of the loss. If hook panics in the goroutine of a caller, the caller has no lock; in one
// of the Locker's, the program ends. Pass slow work to a channel.
func WithHook(hook func(context.Context, sqllock.Event)) Option {
	return func(s *settings) { s.events.Hook = hook }
}

// WithDurableRelease makes releases on PostgreSQL commit as the session is configured, as acquisitions always do.
// Without it they commit with synchronous_commit off, unless a pooler, or a driver other than pgx, is in between. A
// crash or a failover of the server can then forget the latest releases. The Locker frees those names when it
// reconnects. If its process has ended meanwhile, they are free when they expire.
func WithDurableRelease() Option {
	return func(s *settings) { s.options.Durable = true }
}

// WithMaxConnections sets how many connections the Locker opens at most: one is for renewals, half of them are for waits,
// and up to six for all else. The default is 14, the least 1, and more than 14 are never opened. With one or two,
// statements take turns on the connection for renewals. Waits for more names than there are connections for waits poll;
// see [Locker.Acquire]. A connection that does not answer for seconds is replaced before it has closed, so one more may
// be open for a moment. See Connections in docs/operations.md for what few connections cost.
func WithMaxConnections(n int) Option {
	return func(s *settings) { s.options.Most = conn.Limit(n) }
}

// WithTables sets the prefix and the schema of the tables.
func WithTables(t schema.Tables) Option {
	return func(s *settings) { s.tables = t }
}

// WithDialect sets the dialect of the database for an unknown driver, such as one that wraps another.
func WithDialect(d schema.Dialect) Option {
	return func(s *settings) { s.dialect = d }
}

func newLocker(c driver.Connector, opts []Option) (*Locker, error) {
	l, err := configure(opts)
	if err != nil {
		return nil, err
	}
	if l.dialect == "" {
		if l.dialect, err = dialectOf(c.Driver()); err != nil {
			return nil, err
		}
	}
	s, err := store.New(c, l.dialect, l.tables, l.options)
	if err != nil {
		return nil, err
	}
	l.keepIn(s)
	return l, nil
}

// configure returns a Locker with these options, which has no store yet.
func configure(opts []Option) (*Locker, error) {
	l := &Locker{settings: settings{
		ttl:   15 * time.Second,
		owner: filepath.Base(os.Args[0]),

		options: store.Options{Most: conn.DefaultLimit},
		events:  observe.Sink{Logger: slog.Default()},
	}}
	for _, opt := range opts {
		opt(&l.settings)
	}
	l.owner = truncate(l.owner)
	if l.options.Most < 1 {
		return nil, fmt.Errorf("leasetable: WithMaxConnections(%d): a Locker needs at least one connection", l.options.Most)
	}
	if err := checkTTL(l.ttl); err != nil {
		return nil, fmt.Errorf("leasetable: %w", err)
	}
	return l, nil
}

// keepIn has l keep its leases in s.
func (l *Locker) keepIn(s store.Store) {
	host, _ := os.Hostname() // for people to read; a host without a name shows none
	l.events.Locker = l.identity
	l.keeper = lease.NewKeeper(s, store.LeaseRow{Owner: l.owner, Host: truncate(host)}, l.events)
	l.permits.Keeper = l.keeper
	l.turns = wait.NewTurns(l.keeper)
	s.Lend(l.keeper.RenewalNeeds, l.turns.GiveUp)
}

// identity returns the identity of l for its events.
func (l *Locker) identity() event.Locker {
	return event.Locker{Kind: "lease", System: l.keeper.Store.System(), Owner: l.owner, Holds: l.keeper}
}

// truncate fits text into the tables: valid UTF-8 without zero bytes, at most 255 bytes.
func truncate(text string) string {
	text = strings.ReplaceAll(text, "\x00", "")
	return strings.ToValidUTF8(text[:min(len(text), 255)], "")
}

func checkTTL(ttl time.Duration) error {
	if ttl < lease.MinTTL {
		return fmt.Errorf("TTL %v is too short; it must be at least %v", ttl, lease.MinTTL)
	}
	return nil
}

// Close ends the Locker's leases and so frees their locks. The contexts of the locks end with sqllock.ErrClosed, and
// calls under way fail with it. If the database does not answer within a few seconds, the locks are free when they
// expire. Closing again is harmless.
func (l *Locker) Close() error {
	defer l.turns.Close()
	return l.keeper.Close()
}

func (l *Locker) inspect(ctx context.Context, name string, opts ...sqllock.Option) (store.State, error) {
	_, err := choose(opts)
	if err := errors.Join(lockname.Check(name), err); err != nil {
		return store.State{}, &sqllock.OpError{Op: "inspect", Name: name, Err: err}
	}
	return ask(ctx, l, "inspect", name, func(ctx context.Context) (store.State, error) { return l.keeper.Store.Read(ctx, name) })
}
