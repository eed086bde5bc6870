package pg

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

// connectAs opens a connection as a pool with this configuration does.
func connectAs(ctx context.Context, config *pgxpool.Config) (*pgx.Conn, error) {
	cc := config.ConnConfig.Copy()
	cc.Tracer = nil // heartbeats are not the application's statements
	// Other handlers let a statement run on for some time after its deadline.
	cc.BuildContextWatcherHandler = func(pc *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: pc.Conn()}
	}
	if config.BeforeConnect != nil {
		if err := config.BeforeConnect(ctx, cc); err != nil {
			return nil, err
		}
	}
	connector.ShareTime(cc, session.OpenTimeout)
	pc, err := pgx.ConnectConfig(ctx, cc)
	if err != nil || config.AfterConnect == nil {
		return pc, err
	}
	if err := config.AfterConnect(ctx, pc); err != nil {
		closeConn(pc) //nolint:contextcheck // also with a dead ctx
		return nil, err
	}
	return pc, nil
}

// Connector makes a connector of a pool, for example for leasetable.FromConnector. It connects as pool does, with the
// pool's hooks BeforeConnect and AfterConnect but without its tracer. It takes no connection from pool, so the hooks
// BeforeAcquire, PrepareConn and AfterRelease are not called: a role or a search_path that they set does not hold. It does
// not close pool. For a nil pool it returns nil, which FromConnector refuses.
func Connector(pool *pgxpool.Pool) driver.Connector {
	if pool == nil {
		return nil
	}
	config := pool.Config()
	config.ConnConfig.Tracer = nil
	var opts []stdlib.OptionOpenDB
	if config.BeforeConnect != nil {
		opts = append(opts, stdlib.OptionBeforeConnect(func(ctx context.Context, cc *pgx.ConnConfig) error {
			*cc = *cc.Copy() // stdlib gives every call the same maps
			return config.BeforeConnect(ctx, cc)
		}))
	}
	if config.AfterConnect != nil {
		opts = append(opts, stdlib.OptionAfterConnect(func(ctx context.Context, pc *pgx.Conn) error {
			err := config.AfterConnect(ctx, pc)
			if err != nil {
				closeConn(pc) //nolint:contextcheck // also with a dead ctx; stdlib leaves it open
			}
			return err
		}))
	}
	return stdlib.GetConnector(*config.ConnConfig, opts...)
}

const needPgx = "session locks on PostgreSQL need version 5 of pgx, and none of what wraps it: " +
	"use pg.New with a connection string, pg.FromPool, or pg.FromConnector with a connector of github.com/jackc/pgx/v5/stdlib"

// connectBy returns a function that opens a connection with c.
func connectBy(c driver.Connector) (func(context.Context) (*pgx.Conn, error), error) {
	if _, ok := c.Driver().(*stdlib.Driver); !ok {
		return nil, fmt.Errorf("sqllock: the driver is %T; %s", c.Driver(), needPgx)
	}
	c = connector.Sharing(c, session.OpenTimeout)
	return func(ctx context.Context) (*pgx.Conn, error) {
		dc, err := c.Connect(ctx)
		if err != nil {
			return nil, err
		}
		sc, ok := dc.(*stdlib.Conn)
		if !ok {
			return nil, errors.Join(fmt.Errorf("%w: the connection of this *sql.DB is a %T; %s", sqllock.ErrUnsupported, dc, needPgx), dc.Close())
		}
		// Other handlers let a statement run on for some time after its deadline, and send cancel requests.
		if build := sc.Conn().Config().BuildContextWatcherHandler; build != nil {
			h := build(sc.Conn().PgConn())
			if _, ok := h.(*pgconn.DeadlineContextWatcherHandler); !ok {
				return nil, errors.Join(fmt.Errorf("%w: the connections of this *sql.DB have a %T; session locks need pgx's default, "+
					"DeadlineContextWatcherHandler: use pg.New with a connection string, or pg.FromPool", sqllock.ErrUnsupported, h), dc.Close())
			}
		}
		return sc.Conn(), nil
	}, nil
}

// open connects, refuses a server that would not keep a lock, and sets up the session.
func (l *Locker) open(ctx context.Context) (session.Conn[key], error) {
	pc, err := l.connect(ctx)
	if err != nil {
		return nil, notConnected(err, l.connected.Load())
	}
	l.connected.Store(true)
	c := &conn{pc: pc, request: request{bind: pgproto3.Bind{ResultFormatCodes: []int16{1}}}}
	if err := l.setUp(ctx, c); err != nil {
		broken := c.Broken(err) || wasCancelled(err)
		closeConn(pc) //nolint:contextcheck // also with a dead ctx
		err = fmt.Errorf("set up a PostgreSQL session: %w", withLimit(err))
		if broken {
			err = &session.UnavailableError{Err: err}
		}
		return nil, err
	}
	return c, nil
}

// wasCancelled reports whether a statement met a time limit, as before noLimitSQL, or somebody cancelled it.
func wasCancelled(err error) bool {
	const queryCanceled = "57014"
	return connector.CodeOf(err) == queryCanceled
}

// notConnected returns the error of a session whose connection could not be opened because of err. before reports whether
// another one was opened before.
func notConnected(err error, before bool) error {
	if connector.Unparsable(err) {
		return &session.UnavailableError{Err: connector.ErrUnparsable, Permanent: true}
	}
	if err := withLimit(err); errors.Is(err, sqllock.ErrLimit) || errors.Is(err, sqllock.ErrUnsupported) {
		return err
	}
	return &session.UnavailableError{Err: err, Permanent: connector.NotLetIn(err, before)}
}

// setUp makes sure that the session can be trusted with locks, and prepares it (I49).
func (l *Locker) setUp(ctx context.Context, c *conn) error {
	is, err := probe(ctx, c.pc)
	if err != nil {
		return err
	}
	if err := l.admit(ctx, c.pc, &is); err != nil {
		return err
	}
	c.pid, c.database = is.pid, is.database
	if _, err := c.pc.PgConn().Exec(ctx, noLimitSQL).ReadAll(); err != nil {
		return err
	}
	old := is.version < hasSessionTimeout
	if old {
		l.warnOld.Do(func() {
			l.events.Log(ctx, slog.LevelWarn, "this PostgreSQL has no idle_session_timeout: "+
				"a process that is stopped, but not cut off, keeps its locks until it goes on", slog.Int("server_version_num", is.version))
		})
	}
	ttl := strconv.FormatInt(l.ttl.Milliseconds(), 10)
	_, err = c.pc.Exec(ctx, settingsSQL, pgx.QueryExecModeExec, ttl, "sqllock/"+strings.Map(ascii, l.owner), old)
	if err != nil {
		return err
	}
	if !old {
		c.idle, c.waitIdle = ttl, strconv.FormatInt(l.waitTTL().Milliseconds(), 10)
	}
	return c.prepare(ctx)
}

// ascii replaces the characters that not every encoding of a database has; PostgreSQL itself shows "?" for them.
func ascii(r rune) rune {
	if r < ' ' || r > '~' {
		return '?'
	}
	return r
}

// errStandby refuses a standby, which may be the primary soon.
var errStandby = &session.PassingRefusalError{Refused: &refusal.Error{
	Seen:    "the server is a standby, whose advisory locks its primary does not know",
	Instead: "connect to the primary",
}}

// withLimit turns the error that the server has no connection (53300) or no lock (53200) left into a
// *session.LimitError.
func withLimit(err error) error {
	if errors.Is(err, sqllock.ErrLimit) {
		return err
	}
	const tooManyConnections, outOfMemory = "53300", "53200"
	if code := connector.CodeOf(err); code == tooManyConnections || code == outOfMemory {
		return &session.LimitError{Err: err, OfServer: code == tooManyConnections}
	}
	return err
}

// Versions, as in server_version_num.
const (
	hasSessionTimeout = 140000
	oldest            = 120000
)

// server describes the server of a connection.
type server struct {
	database int64  // its oid
	pid      string // the process id of the backend that answers
	standby  bool
	version  int
	fullName string
}

func probe(ctx context.Context, pc *pgx.Conn) (is server, err error) {
	// One round trip, without a prepared statement in a session that may be a pooler's.
	results, err := pc.PgConn().Exec(ctx, probeSQL).ReadAll()
	if err != nil {
		return is, err
	}
	row, err := rowOf(5, results...)
	if err != nil {
		return is, err
	}
	is = server{pid: string(row[1]), standby: string(row[2]) == "t", fullName: string(row[4])}
	var errOID, errVersion error
	is.database, errOID = strconv.ParseInt(string(row[0]), 10, 64)
	is.version, errVersion = strconv.Atoi(string(row[3]))
	return is, errors.Join(errOID, errVersion)
}

// refuse refuses a server on which an advisory lock would not exclude others, or would not end (I49).
func (l *Locker) refuse(ctx context.Context, pc *pgx.Conn, is *server) error {
	given := pc.PgConn().PID() // the process id that the connection was given
	switch {
	case strings.Contains(is.fullName, "CockroachDB"):
		return &refusal.Error{
			Seen:    "the server is CockroachDB, whose advisory locks do nothing",
			Instead: useLease,
		}
	case is.pid != strconv.FormatUint(uint64(given), 10) && !l.pooled:
		return &refusal.Error{
			Seen: fmt.Sprintf("a connection pooler is in between (the connection was given process id %d, "+
				"statements run in %s), which may hand the session, and its locks, to somebody else", given, is.pid),
			Instead: insteadOfPooler + ". If it pools sessions, say so (pg.WithSessionPooling)",
		}
	case is.standby:
		return errStandby
	case is.version < oldest:
		return &refusal.Error{
			Seen:    "the server is older than PostgreSQL 12: " + is.fullName,
			Instead: "use a later one, or " + useLease,
		}
	case l.pooled:
		return l.checkPooler(ctx, pc, is.pid)
	}
	return nil
}
