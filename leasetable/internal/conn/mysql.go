package conn

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/internal/connector"
)

// mysqlConn does faster what MySQL's driver does with a connection. It prepares a statement with arguments once and
// keeps it; the driver makes three round trips for each execution. When the context of a statement that changes
// something ends, mysqlConn cuts off the connection itself; the driver switches goroutines twice per statement for
// that, whether the context ends or not.
type mysqlConn struct {
	plainConn
	cutter
	prepared map[string]driver.Stmt
}

func newMySQLConn(dc driverConn) *mysqlConn {
	return &mysqlConn{plainConn: plainConn{dc}, cutter: cutter{socket: connector.Socket(dc)}, prepared: make(map[string]driver.Stmt)}
}

// plainRows are rows whose columns are named without their tables. The DSN option columnsWithAlias adds the tables.
type plainRows struct{ driver.Rows }

func plain(rows driver.Rows, err error) (driver.Rows, error) {
	if err != nil {
		return nil, err
	}
	return plainRows{rows}, nil
}

func (r plainRows) Columns() []string {
	columns := slices.Clone(r.Rows.Columns())
	for i, column := range columns {
		columns[i] = column[strings.LastIndexByte(column, '.')+1:]
	}
	return columns
}

// stmt returns the prepared statement of query.
func (c *mysqlConn) stmt(ctx context.Context, query string) (driver.Stmt, error) {
	if ready := c.prepared[query]; ready != nil {
		return ready, nil
	}
	fresh, err := c.PrepareContext(ctx, query)
	if err == nil {
		c.prepared[query] = fresh
	}
	return fresh, err
}

func (c *mysqlConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		return c.exec(ctx, func(ctx context.Context) (driver.Result, error) {
			return c.driverConn.ExecContext(ctx, query, nil)
		})
	}
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	ex, ok := stmt.(driver.StmtExecContext)
	if !ok {
		return nil, driver.ErrSkip // database/sql does it in its own way
	}
	result, err := c.exec(ctx, func(ctx context.Context) (driver.Result, error) { return ex.ExecContext(ctx, args) })
	c.endIfUnprepared(err)
	return result, err
}

// endIfUnprepared has the connection closed if what it has prepared is gone: a proxy has given it another session.
func (c *mysqlConn) endIfUnprepared(err error) {
	c.cut = c.cut || err != nil && connector.CodeOf(err) == "mysql 1243"
}

// BeginTx implements driver.ConnBeginTx, by statements of its own: no driver watches a context while a transaction ends.
// The options are those of the session.
func (c *mysqlConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	return mysqlTx{c, ctx}, c.bound(ctx, "START TRANSACTION")
}

// mysqlTx is a transaction whose context bounds its end, too.
type mysqlTx struct {
	conn *mysqlConn
	ctx  context.Context //nolint:containedctx // that of BeginTx
}

func (t mysqlTx) Commit() error { return t.conn.bound(t.ctx, "COMMIT") }

func (t mysqlTx) Rollback() error { return t.conn.bound(t.ctx, "ROLLBACK") }

// bound begins or ends a transaction. If that is not known to have succeeded, the connection is closed.
func (c *mysqlConn) bound(ctx context.Context, statement string) error {
	_, err := c.ExecContext(ctx, statement, nil)
	c.cut = c.cut || err != nil
	return err
}

// exec calls f, with a context that does not end if the connection can be cut off.
func (c *mysqlConn) exec(ctx context.Context, f func(context.Context) (driver.Result, error)) (driver.Result, error) {
	if c.socket == nil {
		return f(ctx)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	ended := c.watch(ctx, 0)
	result, err := f(context.WithoutCancel(ctx))
	return result, ended(err)
}

func (c *mysqlConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return plain(c.driverConn.QueryContext(ctx, query, nil))
	}
	stmt, err := c.stmt(ctx, query)
	if err != nil {
		return nil, err
	}
	q, ok := stmt.(driver.StmtQueryContext)
	if !ok {
		return nil, driver.ErrSkip // database/sql does it in its own way
	}
	rows, err := q.QueryContext(ctx, args)
	c.endIfUnprepared(err)
	return plain(rows, err)
}

func (c *mysqlConn) IsValid() bool { return !c.cut && c.plainConn.IsValid() }
