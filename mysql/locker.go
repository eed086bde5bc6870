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

// locksPerSession bounds how many locks the end of one connection can cost.
const locksPerSession = 1000

// Locker takes session locks on MySQL or MariaDB. Close it when it is no longer needed.
type Locker struct {
	db       *sql.DB // the Locker's own: keeps no idle connection and has no limit
	ttl      time.Duration
	idle     time.Duration // at the longest, before a heartbeat
	owner    string
	sessions int
	wide     bool        // names belong to the whole server
	mariadb  atomic.Bool // the server is one
	events   observe.Sink
	engine   *session.Locker[string]
}

var _ sqllock.Locker = (*Locker)(nil)

// Option sets up a Locker.
type Option func(*Locker)

// WithSessionTTL sets how long the server keeps a session, and its locks, that it does not
// hear of; it is rounded up to whole seconds. The default is 15 s, the least 3 s, the most a day. A shorter one
// frees the locks of a stopped or cut-off process sooner, and loses those of one that merely
// stalls.
func WithSessionTTL(ttl time.Duration) Option {
	return func(l *Locker) { l.ttl = ttl }
}

// WithOwner sets what the Locker calls itself. The default is program@host:pid.
func WithOwner(owner string) Option {
	return func(l *Locker) { l.owner = owner }
}

// WithServerWideNames makes the names those of the whole server: a Locker has the same locks in
// every database. Without it a name belongs to the connection's database. It is as if the
// connections had no database.
func WithServerWideNames() Option {
	return func(l *Locker) { l.wide = true }
}

// WithMaxConnections sets how many connections the Locker opens at most, half of them to wait on.
// The default is 20, the least 2, the most 1000. A connection holds some hundreds of locks; when all are full an
// acquisition fails with sqllock.ErrLimit. Waits for more names than there are connections to wait on
// try every 50 ms instead of standing in the server's queue.
func WithMaxConnections(n int) Option {
	return func(l *Locker) { l.sessions = n }
}

// WithLogger has the Locker log to logger: at the level Warn that locks were lost or a connection
// ended, at Debug everything else that happens to locks. Names of locks are logged, SQL and
// passwords are not. Without it nothing is logged.
func WithLogger(logger *slog.Logger) Option {
	return func(l *Locker) { l.events.Logger = logger }
}

// WithHook has hook called with what happens to the Locker's locks, after it happened. It is
// called from many goroutines, at the same time too, and now and then after Close. What calls it
// waits for it, renewals among them: a hook that is slow loses locks, and one that uses the Locker or
// panics can hang it. Hand over to a channel what takes time.
func WithHook(hook func(context.Context, sqllock.Event)) Option {
	return func(l *Locker) { l.events.Hook = hook }
}

// New returns a Locker that connects by dsn, in the form of github.com/go-sql-driver/mysql:
// user:password@tcp(host:3306)/database. It connects when the first lock is asked for.
//
// The DSN's readTimeout and writeTimeout are not used: every statement has a deadline, and a
// wait takes longer.
func New(dsn string, opts ...Option) (*Locker, error) {
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		// The text of the error may repeat a part of the DSN.
		return nil, errors.New("sqllock: the MySQL DSN cannot be parsed; " +
			"it should look like user:password@tcp(host:3306)/database")
	}
	config.ReadTimeout, config.WriteTimeout = 0, 0
	config.Logger = &gomysql.NopLogger{}
	dialSockets(config)
	return newLocker(opts, func(owner string) (driver.Connector, error) {
		config.ConnectionAttributes = strings.TrimPrefix(config.ConnectionAttributes+
			",program_name:sqllock/"+strings.NewReplacer(",", " ", ":", " ").Replace(owner), ",")
		return gomysql.NewConnector(config)
	})
}

// FromDB returns a Locker that connects as db does, whose driver must be
// github.com/go-sql-driver/mysql. It takes no connection from db's pool, and does not close it. For
// a *sqlx.DB pass its field DB. The driver writes lines of its own to stderr when a connection breaks, unless the configuration of db has
// another Logger. A readTimeout of db's must be longer than two seconds.
func FromDB(db *sql.DB, opts ...Option) (*Locker, error) {
	c, err := connector.Of(db)
	if err != nil {
		return nil, err
	}
	return FromConnector(c, opts...)
}

// FromConnector returns a Locker that connects by c, which github.com/go-sql-driver/mysql has made. A readTimeout of c's must be longer
// than two seconds.
func FromConnector(c driver.Connector, opts ...Option) (*Locker, error) {
	if err := connector.Check(c); err != nil {
		return nil, err
	}
	switch c.Driver().(type) {
	case gomysql.MySQLDriver, *gomysql.MySQLDriver:
	default:
		return nil, fmt.Errorf("sqllock: the driver is %T; session locks on MySQL and MariaDB need github.com/go-sql-driver/mysql, and none of "+
			"what wraps it: use mysql.New with a DSN, or mysql.FromConnector with a connector of that driver", c.Driver())
	}
	return newLocker(opts, func(string) (driver.Connector, error) { return c, nil })
}

func newLocker(opts []Option, connect func(owner string) (driver.Connector, error)) (*Locker, error) {
	l := &Locker{ttl: 15 * time.Second, idle: time.Second, owner: session.DefaultOwner(), sessions: 20}
	for _, opt := range opts {
		opt(l)
	}
	// wait_timeout counts whole seconds, a slice of a wait takes one, and a heartbeat a second
	// finds a dead connection.
	timing, err := session.NewTiming(l.ttl, 3*time.Second, l.idle)
	if err != nil {
		return nil, err
	}
	limits, err := session.NewLimits(l.sessions, locksPerSession)
	if err != nil {
		return nil, err
	}
	c, err := connect(l.owner)
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

// identity says whose events those of l are.
func (l *Locker) identity() event.Locker {
	system := "mysql"
	if l.mariadb.Load() {
		system = "mariadb"
	}
	return event.Locker{Kind: "session", System: system, Owner: l.owner}
}

// TryAcquire implements sqllock.Locker. The *sqllock.HeldError names the holding connection.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := l.want(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	return l.engine.TryAcquire(ctx, w)
}

// Acquire implements sqllock.Locker. A wait whose connection ends, as when the server restarts, begins again on another one, and
// so does one on a server that is read-only for now; its place in the queue is lost. When the Locker itself holds as many
// locks as it may (sqllock.ErrLimit) it does not wait.
func (l *Locker) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	w, err := l.want(ctx, name, opts)
	if err != nil {
		return nil, err
	}
	return l.engine.Acquire(ctx, w)
}

// want makes of a name and options what is asked for. This package has no options of its own.
func want(op, name string, opts []sqllock.Option) (session.Want[string], error) {
	_, o, err := session.CheckArgs[struct{}](op, name, opts)
	return session.Want[string]{Name: name, Key: name, Wait: o.Wait, Probe: o.Probe}, err
}

// want is the want of an acquisition. That it is not valid is told, as whatever else ends one.
func (l *Locker) want(ctx context.Context, name string, opts []sqllock.Option) (session.Want[string], error) {
	w, err := want("acquire", name, opts)
	if err != nil {
		l.events.Asked(ctx, name, time.Now(), false, nil, err)
	}
	return w, err
}

// Close ends the Locker's sessions. Locks that are still held end with sqllock.ErrClosed. It
// returns when every connection is closed. Closing again is harmless.
func (l *Locker) Close() error {
	l.engine.Close()
	return l.db.Close()
}
