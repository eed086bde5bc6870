package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// The user brings the driver, so this package does not import pgx. What a pgx connection can do beyond database/sql is
// reached by reflection and by interfaces.

// pgxServer is what a *pgconn.PgConn knows of its session.
type pgxServer interface {
	PID() uint32    // the server process, as reported to the client at connect
	TxStatus() byte // of the last answer
	Conn() net.Conn
}

func serverOf(dc driver.Conn) (server pgxServer, ok bool) {
	conn, ok := connector.Pgx(dc)
	if !ok {
		return nil, false
	}
	return reflect.TypeAssert[pgxServer](conn.MethodByName("PgConn").Call(nil)[0])
}

// postgresConn runs single statements on a pgx connection. Each is a transaction of its own, and postgresConn checks
// that it was. It prepares nothing on a connection that is not known to lead to PostgreSQL itself: a pooler may give
// each statement another session, where the prepared statement is unknown, or exists already. An error about a prepared
// statement reveals a pooler, too: then the statement has done nothing, and is run again.
type postgresConn struct {
	plainConn
	server     pgxServer
	unprepared any // the first argument of a statement that must not be prepared
	prepares   bool
	pooler     *atomic.Bool // set when there is one

	socket    net.Conn
	lastReset *time.Time // the driver's; nil: it is not known
}

// newPostgresConn wraps a connection that was just opened. The columns are for lookUpByIndex.
func newPostgresConn(ctx context.Context, dc driverConn, pooler *atomic.Bool, columns ...string) (driver.Conn, error) {
	direct, err := lookUpByIndex(ctx, dc, columns...)
	if err != nil {
		return nil, err
	}
	if !direct {
		pooler.Store(true)
	}
	server, known := serverOf(dc)
	if !known {
		return newOtherConn(dc), nil
	}
	unprepared := connector.Unprepared(dc)
	return &postgresConn{
		plainConn: plainConn{dc}, server: server, unprepared: unprepared, prepares: direct || unprepared == nil, pooler: pooler,
		socket: server.Conn(), lastReset: connector.LastReset(dc),
	}, nil
}

func (c *postgresConn) knownSocket() net.Conn { return c.socket }

// arguments returns the arguments of a statement for pgx.
func (c *postgresConn) arguments(args []driver.NamedValue) []driver.NamedValue {
	if c.prepares {
		return args
	}
	return slices.Insert(slices.Clone(args), 0, driver.NamedValue{Value: c.unprepared})
}

// misled reports whether a statement did nothing because it was prepared in another session, or by another client in
// this one. From then on nothing is prepared.
func (c *postgresConn) misled(err error) bool {
	if err == nil || !c.prepares || c.unprepared == nil || !connector.Misprepared(err) {
		return false
	}
	c.prepares = false
	c.pooler.Store(true)
	return true
}

func (c *postgresConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.driverConn.ExecContext(ctx, query, c.arguments(args))
	if c.misled(err) {
		result, err = c.driverConn.ExecContext(ctx, query, c.arguments(args))
	}
	if err != nil {
		return nil, err
	}
	return result, c.committed()
}

// QueryContext implements driver.QueryerContext. If a query was surely not sent, it returns ErrUnsent, so that the query
// runs on another connection, as the driver does it for ExecContext.
func (c *postgresConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.driverConn.QueryContext(ctx, query, c.arguments(args))
	if c.misled(err) {
		rows, err = c.driverConn.QueryContext(ctx, query, c.arguments(args))
	}
	var unsent interface{ SafeToRetry() bool }
	safe := errors.As(err, &unsent) && unsent.SafeToRetry() && ctx.Err() == nil
	if safe || errors.Is(err, driver.ErrBadConn) { // pgx returns it only for what was not sent
		return nil, ErrUnsent
	}
	if err != nil {
		return nil, err
	}
	return postgresRows{rows, c}, nil
}

// IsValid implements driver.Validator. A connection on which a transaction was left open is closed.
func (c *postgresConn) IsValid() bool { return c.committed() == nil }

// committed returns an error after a statement that left a transaction open (I16).
func (c *postgresConn) committed() error {
	if c.server.TxStatus() == 'I' {
		return nil
	}
	return errUncommitted
}

// errUncommitted is the error of a statement that was answered but not committed. pgpool-II does so in raw mode, and
// the client sees no other sign of it. Closing the connection undoes the statement; until then it may still be
// committed.
var errUncommitted = &dberr.Error{Err: &refusal.Error{
	Seen: "what is between here and PostgreSQL leaves statements uncommitted: one that was alone left a transaction open (pgpool-II " +
		"does so with backend_clustering_mode = 'raw' or 'slony')",
	Instead: "connect to PostgreSQL itself, by PgBouncer, or by pgpool-II with backend_clustering_mode = 'streaming_replication'",
}}

// postgresRows are the rows of a statement. At their end it is checked that the statement was committed.
type postgresRows struct {
	driver.Rows
	conn *postgresConn
}

func (r postgresRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if errors.Is(err, io.EOF) {
		if err := r.conn.committed(); err != nil {
			return err
		}
	}
	return err
}

func (r postgresRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return err
	}
	return r.conn.committed()
}
