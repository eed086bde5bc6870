package leasetable

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"reflect"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// lookUpByIndexIn has the server find rows by their index whatever it knows of the tables, if the session is served by the process with
// this id, and reports whether it is. A plan that was made while a table was empty reads all of it, and is kept for a statement
// that was prepared until the table is analyzed. What has no index it reads all the same, at a cost for which it would
// compile the plan, which takes longer. That is one round trip.
func lookUpByIndexIn(ctx context.Context, dc driver.Conn, pid uint64) (bool, error) {
	ex, ok := dc.(driver.ExecerContext)
	if !ok {
		return false, nil
	}
	text := fmt.Sprintf("SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false) WHERE pg_backend_pid() = %d", pid)
	result, err := ex.ExecContext(ctx, text, nil)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// postgresConn does faster what pgx does with a connection. When it was idle for a second the driver asks the server for a sign of life,
// and a statement takes two round trips. Here it only looks whether something has come from the server meanwhile, as the end of the
// connection would, and asks then. A connection that ends later is one that ends under a statement.
type postgresConn struct {
	postgresDriverConn
	socket    net.Conn
	lastReset *time.Time // the driver's
}

type postgresDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
}

// newPostgresConn returns dc itself if it is not known how its driver does that.
func newPostgresConn(dc driver.Conn) driver.Conn {
	lastReset := connector.LastReset(dc)
	conn, isPGX := pgxConn(dc)
	c, can := dc.(postgresDriverConn)
	if lastReset == nil || !isPGX || !can {
		return dc
	}
	socket, _ := reflect.TypeAssert[net.Conn](conn.MethodByName("PgConn").Call(nil)[0].MethodByName("Conn").Call(nil)[0])
	return &postgresConn{postgresDriverConn: c, socket: socket, lastReset: lastReset}
}

// looksAfter is for how long a connection may have been idle that is not looked at: less than the driver's second.
const looksAfter = time.Second / 2

// ResetSession implements driver.SessionResetter.
func (c *postgresConn) ResetSession(ctx context.Context) error {
	if now := time.Now(); now.Sub(*c.lastReset) > looksAfter && connector.Silent(c.socket) {
		*c.lastReset = now
	}
	return c.postgresDriverConn.ResetSession(ctx)
}

// QueryContext implements driver.QueryerContext. A query that surely was not sent is for another connection, as the driver has it with
// what ExecContext executes.
func (c *postgresConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.postgresDriverConn.QueryContext(ctx, query, args)
	var unsent interface{ SafeToRetry() bool }
	if errors.As(err, &unsent) && unsent.SafeToRetry() && ctx.Err() == nil {
		return nil, driver.ErrBadConn
	}
	return rows, err
}
