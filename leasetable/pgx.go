package leasetable

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
)

// What a connection of pgx can do and database/sql does not know of is reached without pgx itself,
// for the user brings the driver.

// pgxConn returns the *pgx.Conn of a connection, if it has one.
func pgxConn(dc driver.Conn) (conn reflect.Value, ok bool) { return connector.Pgx(dc) }

// pgxServer is what a *pgconn.PgConn knows of the session that it leads to.
type pgxServer interface {
	PID() uint32    // the process, as the client was told when it connected
	TxStatus() byte // of the last answer
}

func serverOf(conn reflect.Value) (server pgxServer, ok bool) {
	return reflect.TypeAssert[pgxServer](conn.MethodByName("PgConn").Call(nil)[0])
}

// waiterOf returns what waits for a notification on a connection of pgx.
func waiterOf(dc driver.Conn) func(ctx context.Context) (payload string, err error) {
	conn, _ := pgxConn(dc)
	wait := conn.MethodByName("WaitForNotification")
	return func(ctx context.Context) (string, error) {
		out := wait.Call([]reflect.Value{reflect.ValueOf(ctx)})
		if err, _ := reflect.TypeAssert[error](out[1]); err != nil {
			return "", err
		}
		return out[0].Elem().FieldByName("Payload").String(), nil
	}
}

// isDirect reports whether a connection is known to lead to PostgreSQL itself, and not to a pooler:
// the process that serves it is the one that it was told of when it was opened. Of such a session lookUpByIndexIn is true.
func isDirect(ctx context.Context, dc driver.Conn) (bool, error) {
	conn, ok := pgxConn(dc)
	if !ok {
		return false, nil
	}
	server, ok := serverOf(conn)
	if !ok {
		return false, nil
	}
	return lookUpByIndexIn(ctx, dc, server.PID())
}

// postgresConn runs single statements on a connection of pgx, each of them a transaction of its own, and makes sure that it
// was one. It prepares nothing on a connection that is not known to lead to PostgreSQL itself: a pooler may give each
// statement another session, where what was prepared is not known, or is there already. That they do not tell of each other's
// statements is found out by the error, too: then the statement has done nothing, and is run again.
type postgresConn struct {
	pgxDriverConn
	server     pgxServer
	unprepared any // the first argument of a statement that is not to be prepared
	prepares   bool
	pooler     *atomic.Bool // is set when there is one

	socket    net.Conn
	lastReset *time.Time // the driver's; nil: it is not known
}

// pgxDriverConn is what a connection of pgx can do that statements need. There are no transactions on it.
type pgxDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.SessionResetter
}

// newPostgresConn makes one of a connection that was just opened. That of another driver stays as it is.
func newPostgresConn(ctx context.Context, dc driver.Conn, pooler *atomic.Bool) (driver.Conn, error) {
	direct, err := isDirect(ctx, dc)
	if err != nil {
		return nil, err
	}
	if !direct {
		pooler.Store(true)
	}
	c, ok := dc.(pgxDriverConn)
	if !ok {
		return dc, nil
	}
	conn, ok := pgxConn(dc)
	if !ok {
		return dc, nil
	}
	server, ok := serverOf(conn)
	if !ok {
		return dc, nil
	}
	unprepared := connector.Unprepared(dc)
	socket, _ := reflect.TypeAssert[net.Conn](conn.MethodByName("PgConn").Call(nil)[0].MethodByName("Conn").Call(nil)[0])
	return &postgresConn{
		pgxDriverConn: c, server: server, unprepared: unprepared, prepares: direct || unprepared == nil, pooler: pooler,
		socket: socket, lastReset: connector.LastReset(dc),
	}, nil
}

// arguments are those of a statement for pgx.
func (c *postgresConn) arguments(args []driver.NamedValue) []driver.NamedValue {
	if c.prepares {
		return args
	}
	return slices.Insert(slices.Clone(args), 0, driver.NamedValue{Value: c.unprepared})
}

// misled reports whether a statement did nothing because it was prepared in another session, or by somebody else in this one. From
// then on nothing is prepared.
func (c *postgresConn) misled(err error) bool {
	if err == nil || !c.prepares || c.unprepared == nil || !connector.Misprepared(err) {
		return false
	}
	c.prepares = false
	c.pooler.Store(true)
	return true
}

// ExecContext implements driver.ExecerContext.
func (c *postgresConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.pgxDriverConn.ExecContext(ctx, query, c.arguments(args))
	if c.misled(err) {
		result, err = c.pgxDriverConn.ExecContext(ctx, query, c.arguments(args))
	}
	if err != nil {
		return nil, err
	}
	return result, c.committed()
}

// QueryContext implements driver.QueryerContext. A query that surely was not sent is for another connection, as the driver has it with
// what ExecContext executes.
func (c *postgresConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.pgxDriverConn.QueryContext(ctx, query, c.arguments(args))
	if c.misled(err) {
		rows, err = c.pgxDriverConn.QueryContext(ctx, query, c.arguments(args))
	}
	var unsent interface{ SafeToRetry() bool }
	if errors.As(err, &unsent) && unsent.SafeToRetry() && ctx.Err() == nil {
		return nil, driver.ErrBadConn
	}
	if err != nil {
		return nil, err
	}
	return postgresRows{rows, c}, nil
}

// IsValid implements driver.Validator: a connection on which a transaction was left open is closed.
func (c *postgresConn) IsValid() bool { return c.committed() == nil }

// committed fails after a statement that left a transaction open.
func (c *postgresConn) committed() error {
	if c.server.TxStatus() == 'I' {
		return nil
	}
	return errUncommitted
}

// errUncommitted is the error of a statement that was answered, and not committed: pgpool-II does so in raw mode, of which the
// client sees nothing else. What was done is undone when the connection is closed; until then it may yet be done.
var errUncommitted = &dbError{err: &refusal.Error{
	Seen: "what is between here and PostgreSQL leaves statements uncommitted: one that was alone left a transaction open (pgpool-II " +
		"does so with backend_clustering_mode = 'raw' or 'slony')",
	Instead: "connect to PostgreSQL itself, by PgBouncer, or by pgpool-II with backend_clustering_mode = 'streaming_replication'",
}}

// postgresRows are the rows of a statement, and the end of it.
type postgresRows struct {
	driver.Rows
	conn *postgresConn
}

// Next implements driver.Rows.
func (r postgresRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if errors.Is(err, io.EOF) {
		if err := r.conn.committed(); err != nil {
			return err
		}
	}
	return err
}

// Close implements driver.Rows.
func (r postgresRows) Close() error {
	if err := r.Rows.Close(); err != nil {
		return err
	}
	return r.conn.committed()
}
