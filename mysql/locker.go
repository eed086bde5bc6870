package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/observe"
	"github.com/sqllock/sqllock/internal/session"
)

// locksPerSession bounds how many locks are lost when one connection ends.
const locksPerSession = 1000

// Locker takes session locks on MySQL or MariaDB. Close it when it is no longer needed.
type Locker struct {
	settings
	db        *sql.DB     // the Locker's own: keeps no idle connection and has no limit
	connected atomic.Bool // the server has admitted it
	mariadb   atomic.Bool // the server is MariaDB
	engine    *session.Locker[string]
}

// settings is what options change.
type settings struct {
	ttl      time.Duration
	idle     time.Duration // the longest time without a heartbeat
	owner    string
	named    bool // the owner was given
	sessions int
	wide     bool // names belong to the whole server
	events   observe.Sink
}

var _ sqllock.Locker = (*Locker)(nil)

// Option configures a Locker.
type Option func(*settings)

// WithSessionTTL sets how long the server keeps a session, and its locks, after it last heard from it; the server rounds
// that up to whole seconds. The default is 15 s, the least 3 s, the most a day. A shorter TTL frees the locks of a
// stopped or cut-off process sooner, and loses the locks of a process that merely stalls.
func WithSessionTTL(ttl time.Duration) Option {
	return func(s *settings) { s.ttl = ttl }
}

// WithOwner sets the name that the Locker gives itself in the connection attribute program_name, after "sqllock/". The
// default is program@host:pid. [FromDB] and [FromConnector] refuse it (sqllock.ErrUnsupported), because they cannot
// change the attributes of their connections. There set the attribute in the driver's configuration: in the DSN by
// connectionAttributes=program_name:sqllock/…, or in the field ConnectionAttributes.
func WithOwner(owner string) Option {
	return func(s *settings) { s.owner, s.named = owner, true }
}

var errOwner = fmt.Errorf("sqllock: %w: mysql.WithOwner with FromDB or FromConnector; set the connection attribute program_name in the "+
	"driver's configuration instead (connectionAttributes=program_name:… in the DSN), or use mysql.New", sqllock.ErrUnsupported)

// WithServerWideNames makes the names belong to the whole server: a Locker has the same locks in every database, as if
// its connections had no database. Without it a name belongs to the connection's database.
func WithServerWideNames() Option {
	return func(s *settings) { s.wide = true }
}

// WithMaxConnections sets how many connections the Locker opens at most; half of them are for waits. The default is 20,
// the least 2, the most 1000. A connection holds up to 1,000 locks. When the half that is not for waits is full, by
// default with 10,000 locks, an acquisition fails with sqllock.ErrLimit. Waits for more names than there are connections
// for waits try every 50 ms instead of waiting in the server's queue.
func WithMaxConnections(n int) Option {
	return func(s *settings) { s.sessions = n }
}

// WithLogger sets the logger of the Locker; nil logs nothing. The default is what slog.Default returns when the Locker is
// made. At the level Warn it logs lost locks, connections that ended with locks, waits that begin to retry because the
// database cannot be used, and each outcome of Terminate, at Info if nobody held the lock; at Debug everything else that
// happens to locks. Names of locks are logged, SQL and passwords are not.
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

// New returns a Locker that connects with dsn, in the form of github.com/go-sql-driver/mysql:
// user:password@tcp(host:3306)/database. Like FromDB and FromConnector it does not connect: the Locker does when the first
// lock is requested. The error says that dsn cannot be parsed, without repeating it, or which option is out of range.
//
// New ignores the DSN's readTimeout and writeTimeout: every statement has a deadline, and a wait takes longer. It ignores
// allowAllFiles, with which a server can read every file of this machine.
func New(dsn string, opts ...Option) (*Locker, error) {
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		// The error's text may repeat a part of the DSN.
		return nil, errors.New("sqllock: the MySQL DSN cannot be parsed; " +
			"it should look like user:password@tcp(host:3306)/database")
	}
	config.ReadTimeout, config.WriteTimeout = 0, 0
	config.AllowAllFiles = false
	config.Logger = &gomysql.NopLogger{}
	dialSockets(config)
	return newLocker(opts, func(l *Locker) (driver.Connector, error) {
		config.ConnectionAttributes = strings.TrimPrefix(config.ConnectionAttributes+
			",program_name:sqllock/"+strings.NewReplacer(",", " ", ":", " ").Replace(l.owner), ",")
		return gomysql.NewConnector(config)
	})
}

// FromDB returns a Locker that connects as db does, whose driver must be github.com/go-sql-driver/mysql. It takes no
// connection from db's pool, and does not close it. For a *sqlx.DB pass its field DB. The driver writes lines of its
// own to stderr when a connection breaks, unless the configuration of db has another Logger. A readTimeout of db's must
// be longer than four seconds. For the Locker's name see [WithOwner], which is an error here. So are a nil db, another
// driver or one that wraps it, and an option out of range.
func FromDB(db *sql.DB, opts ...Option) (*Locker, error) {
	c, err := connector.Of(db)
	if err != nil {
		return nil, err
	}
	return FromConnector(c, opts...)
}

const needDriver = "session locks on MySQL and MariaDB need github.com/go-sql-driver/mysql, and none of what wraps it: " +
	"use mysql.New with a DSN, or mysql.FromConnector with a connector of that driver"

// FromConnector returns a Locker that connects with c, a connector of github.com/go-sql-driver/mysql. A readTimeout of
// c's must be longer than four seconds. It returns the errors of FromDB.
func FromConnector(c driver.Connector, opts ...Option) (*Locker, error) {
	if err := connector.Check(c); err != nil {
		return nil, err
	}
	switch c.Driver().(type) {
	case gomysql.MySQLDriver, *gomysql.MySQLDriver:
	default:
		return nil, fmt.Errorf("sqllock: the driver is %T; %s", c.Driver(), needDriver)
	}
	return newLocker(opts, func(l *Locker) (driver.Connector, error) {
		if l.named {
			return nil, errOwner
		}
		return c, nil
	})
}

func newLocker(opts []Option, connect func(*Locker) (driver.Connector, error)) (*Locker, error) {
	l := &Locker{settings: settings{
		ttl: 15 * time.Second, idle: time.Second, owner: session.DefaultOwner(), sessions: 20,
		events: observe.Sink{Logger: slog.Default()},
	}}
	for _, opt := range opts {
		opt(&l.settings)
	}
	// wait_timeout counts whole seconds, a slice of a wait takes at least one, and a heartbeat a second finds a dead
	// connection.
	timing, err := session.NewTiming(l.ttl, 3*time.Second, l.idle)
	if err != nil {
		return nil, err
	}
	limits, err := session.NewLimits(l.sessions, locksPerSession)
	if err != nil {
		return nil, err
	}
	c, err := connect(l)
	if err != nil {
		return nil, err
	}
	l.db = sql.OpenDB(c)
	l.db.SetMaxIdleConns(-1)
	l.events.Locker = l.identity
	l.engine = session.New(session.Config[string]{
		Open: l.open, Timing: timing, Limits: limits, Owner: l.owner, Events: l.events,
	})
	return l, nil
}

// identity returns the Locker for the events of l.
func (l *Locker) identity() event.Locker {
	system := "mysql"
	if l.mariadb.Load() {
		system = "mariadb"
	}
	return event.Locker{Kind: "session", System: system, Owner: l.owner, Holds: l.engine}
}

// TryAcquire implements sqllock.Locker. The *sqllock.HeldError names the holding connection.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := want("acquire", name, opts)
	if err != nil {
		return nil, l.engine.Invalid(ctx, name, err)
	}
	return l.engine.TryAcquire(ctx, w)
}

// Acquire implements sqllock.Locker. If the connection of a wait ends, as when the server restarts, the wait begins
// again on another one; so does a wait on a server that is read-only for now. Its place in the queue is lost. When the
// Locker itself holds as many locks as it may, Acquire does not wait (sqllock.ErrLimit).
func (l *Locker) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := want("acquire", name, opts)
	if err != nil {
		return nil, l.engine.Invalid(ctx, name, err)
	}
	return l.engine.Acquire(ctx, w)
}

// want makes a Want from a name and options. This package has no options of its own.
func want(op, name string, opts []sqllock.Option) (session.Want[string], error) {
	_, o, err := session.CheckArgs[struct{}](op, name, opts)
	return session.Want[string]{Name: name, Key: name, Wait: o.Wait, Probe: o.Probe, Whole: o.Whole}, err
}

// Close ends the Locker's sessions. Locks that are still held end with sqllock.ErrClosed. Close returns when every
// connection is closed, after some two seconds if the server does not answer. It waits three seconds at most for a dial
// function or hook that ignores its context; the connection is closed when it comes. Its error is nil, unless the connector of
// FromDB or FromConnector has a method Close that fails. Closing again is harmless.
func (l *Locker) Close() error {
	l.engine.Close()
	return l.db.Close()
}
