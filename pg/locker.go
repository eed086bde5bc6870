package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/dburl"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/session"
)

// locksPerSession bounds how many locks a session holds. At the end of each statement PostgreSQL goes through all of
// them.
const locksPerSession = 600

// Locker takes session locks on PostgreSQL. Close it when it is no longer needed.
type Locker struct {
	settings
	connect   func(context.Context) (*pgx.Conn, error)
	connected atomic.Bool // the server has admitted it
	warnOld   sync.Once
	engine    *session.Locker[key]
}

// settings is what options change.
type settings struct {
	ttl      time.Duration
	idle     time.Duration // the longest time without a heartbeat
	owner    string
	sessions int
	pooled   bool                                            // a pooler in between is declared to pool sessions
	admit    func(context.Context, *pgx.Conn, *server) error // refuses servers; a field for tests
	events   observe.Sink
}

var _ sqllock.Locker = (*Locker)(nil)

// Option configures a Locker.
type Option func(*settings)

// WithSessionTTL sets how long the server keeps a session, and its locks, after it last heard from it. The default is
// 15 s, the least 1 s, the most a day. A shorter TTL frees the locks of a stopped or cut-off process sooner, and loses
// the locks of a process that merely stalls.
func WithSessionTTL(ttl time.Duration) Option {
	return func(s *settings) { s.ttl = ttl }
}

// WithOwner sets the name that the Locker gives itself in application_name, after "sqllock/". PostgreSQL keeps 63 bytes
// of ASCII of application_name. The default is program@host:pid.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner = owner }
}

// WithMaxConnections sets how many connections the Locker opens at most; half of them are for waits. The default is 20,
// the least 2, the most 1000. A connection holds up to 600 locks. When the half that is not for waits is full, by default
// with 6,000 locks, an acquisition fails with sqllock.ErrLimit. Waits for more names than there are connections for waits
// try every 50 ms instead of waiting in the server's queue.
func WithMaxConnections(n int) Option {
	return func(s *settings) { s.sessions = n }
}

// WithLogger sets the logger of the Locker; nil logs nothing. The default is what slog.Default returns when the Locker is
// made. At the level Warn it logs lost locks, connections that ended with locks, waits that begin to retry because the
// database cannot be used, and, once, that the server is PostgreSQL 12 or 13, on which a process that is stopped but not
// cut off keeps its locks. It also logs each outcome of Terminate, at Info if nobody held the lock. At Debug it logs everything
// else that happens to locks. Names of locks are logged, SQL and passwords are not.
//
// The goroutine that logs waits for the logger's handler, and so does Close. At Debug it may be one that renews: a slow
// handler then loses locks, as a slow hook does (WithHook).
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

// New returns a Locker that connects with connString, a URL or a list of keyword=value pairs, in the form of
// pgx.ParseConfig. Like FromPool, FromDB and FromConnector it does not connect: the Locker does when the first lock is
// requested. The error says that connString cannot be parsed, without repeating it, or which option is out of range.
func New(connString string, opts ...Option) (*Locker, error) {
	config, err := pgx.ParseConfig(connString)
	if err != nil || dburl.IsMisread(connString) {
		return nil, fmt.Errorf("sqllock: %w", connector.ErrUnparsable) // pgx's error repeats the string
	}
	// A string that is meant for pgxpool has settings that a server does not know.
	maps.DeleteFunc(config.RuntimeParams, func(key, _ string) bool { return strings.HasPrefix(key, "pool_") })
	connector.ShareTime(config, session.OpenTimeout)
	return newLocker(func(ctx context.Context) (*pgx.Conn, error) {
		return pgx.ConnectConfig(ctx, config.Copy())
	}, opts)
}

// FromPool returns a Locker that connects as pool does, with the pool's hooks BeforeConnect and AfterConnect, but
// without its tracer. It takes no connection from pool, so the hooks BeforeAcquire, PrepareConn and AfterRelease are not
// called, and does not close it. A nil pool and an option out of range are errors.
func FromPool(pool *pgxpool.Pool, opts ...Option) (*Locker, error) {
	if pool == nil {
		return nil, errors.New("sqllock: the *pgxpool.Pool is nil")
	}
	config := pool.Config()
	return newLocker(func(ctx context.Context) (*pgx.Conn, error) {
		return connectAs(ctx, config)
	}, opts)
}

// FromDB returns a Locker that connects as db does, whose driver must be pgx's stdlib. It takes no connection from db's
// pool, and does not close it. For a *sqlx.DB pass its field DB. A nil db, another driver, a db that connects by a
// *pgxpool.Pool and an option out of range are errors.
func FromDB(db *sql.DB, opts ...Option) (*Locker, error) {
	c, err := connector.Of(db)
	if err != nil {
		return nil, err
	}
	return FromConnector(c, opts...)
}

// FromConnector returns a Locker that connects with c, a connector of github.com/jackc/pgx/v5/stdlib. It returns the
// errors of FromDB.
func FromConnector(c driver.Connector, opts ...Option) (*Locker, error) {
	if err := connector.Check(c); err != nil {
		return nil, err
	}
	connect, err := connectBy(c)
	if err != nil {
		return nil, err
	}
	return newLocker(connect, opts)
}

func newLocker(connect func(context.Context) (*pgx.Conn, error), opts []Option) (*Locker, error) {
	l := &Locker{connect: connect, settings: settings{
		ttl: 15 * time.Second, idle: 5 * time.Second, owner: session.DefaultOwner(), sessions: 20,
		events: observe.Sink{Logger: slog.Default()},
	}}
	l.admit = l.refuse
	for _, opt := range opts {
		opt(&l.settings)
	}
	timing, err := session.NewTiming(l.ttl, time.Second, l.idle)
	if err != nil {
		return nil, err
	}
	timing.Waiting = l.waitTTL()
	limits, err := session.NewLimits(l.sessions, locksPerSession)
	if err != nil {
		return nil, err
	}
	l.events.Locker = func() event.Locker {
		return event.Locker{Kind: "session", System: "postgresql", Owner: l.owner, Holds: l.engine}
	}
	l.engine = session.New(session.Config[key]{
		Open: l.open, Timing: timing, Limits: limits, Owner: l.owner, Events: l.events,
	})
	return l, nil
}

// TryAcquire implements sqllock.Locker. The *sqllock.HeldError names the holding session.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := want("acquire", name, opts)
	if err != nil {
		return nil, l.engine.Invalid(ctx, name, err)
	}
	return l.engine.TryAcquire(ctx, w)
}

// Acquire implements sqllock.Locker. If the session of a wait ends, as when the server restarts, the wait begins again
// on another one; so does a wait on a server that is a standby for now. Its place in the queue is lost. When the Locker
// itself holds as many locks as it may, Acquire does not wait (sqllock.ErrLimit).
func (l *Locker) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := want("acquire", name, opts)
	if err != nil {
		return nil, l.engine.Invalid(ctx, name, err)
	}
	return l.engine.Acquire(ctx, w)
}

// Close ends the Locker's sessions. Locks that are still held end with sqllock.ErrClosed. Close returns when every
// connection is closed, after some two seconds if the server does not answer. It waits three seconds at most for a dial
// function or hook that ignores its context; the connection is closed when it comes. Its error is always nil. Closing again is harmless.
func (l *Locker) Close() error {
	l.engine.Close()
	return nil
}
