package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// otherConn is a connection to PostgreSQL of lib/pq, or of a driver like it. When the context of a statement ends, that
// driver asks the server on another connection to cancel the statement, and still waits for the answer: on a line that is
// cut off, for ever.
type otherConn struct {
	plainConn
	cutter
}

// cancelTime is for how long the driver may have the server cancel a statement before its connection is cut off. It is
// enough for the request to be under way, so that the statement does not go on waiting for a row.
const cancelTime = 100 * time.Millisecond

// newOtherConn wraps a connection whose socket is known. It returns any other as it is.
func newOtherConn(dc driverConn) driver.Conn {
	socket := connector.Socket(dc)
	if socket == nil {
		return dc
	}
	return &otherConn{plainConn{dc}, cutter{socket: socket}}
}

func (c *otherConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	ended := c.watch(ctx, cancelTime)
	result, err := c.driverConn.ExecContext(ctx, query, args)
	return result, ended(err)
}

func (c *otherConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	ended := c.watch(ctx, cancelTime)
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	if err != nil {
		return nil, ended(err)
	}
	return otherRows{rows, ctx, ended}, nil
}

func (c *otherConn) IsValid() bool { return !c.cut && c.plainConn.IsValid() }

// otherRows are the rows of a statement that ends when they are closed.
type otherRows struct {
	driver.Rows
	ctx   context.Context //nolint:containedctx // that of the statement
	ended func(error) error
}

func (r otherRows) Next(to []driver.Value) error {
	err := r.Rows.Next(to)
	if errors.Is(err, io.EOF) {
		return err
	}
	return why(r.ctx, err)
}

func (r otherRows) Close() error { return r.ended(r.Rows.Close()) }
