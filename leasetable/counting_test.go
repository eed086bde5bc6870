package leasetable_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/sqltest"
)

// counter counts the statements that are really sent on the connections of a pool, prepared or not.
type counter struct {
	driver.Connector
	n atomic.Int64
}

// counting opens db once more, with a counter.
func counting(t *testing.T, db *sqltest.Database) (*sqlx.DB, *counter) {
	t.Helper()
	c := new(counter)
	return openedBy(t, db, &c.Connector, c), c
}

// openedBy opens db once more, by a connector. It sets own to that of db.
func openedBy(t *testing.T, db *sqltest.Database, own *driver.Connector, c driver.Connector) *sqlx.DB {
	t.Helper()
	var err error
	if *own, err = connector.Of(db.DB.DB); err != nil {
		t.Fatal(err)
	}
	opened := sqlx.NewDb(sql.OpenDB(c), db.DriverName())
	t.Cleanup(func() { _ = opened.Close() }) // the test is over, so an error does not matter
	return opened
}

// Connect implements driver.Connector.
func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return countedConn{dc.(driven), c}, nil
}

// driven is the interface of the connections of all drivers used here.
type driven interface {
	driver.Conn
	driver.ExecerContext
	driver.QueryerContext
	driver.ConnPrepareContext
	driver.ConnBeginTx
	driver.SessionResetter
}

type countedConn struct {
	driven
	c *counter
}

// CheckNamedValue implements driver.NamedValueChecker.
func (d countedConn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := d.driven.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

// ExecContext implements driver.ExecerContext.
func (d countedConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := d.driven.ExecContext(ctx, query, args)
	d.c.count(err)
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (d countedConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := d.driven.QueryContext(ctx, query, args)
	d.c.count(err)
	return rows, err
}

// count counts a statement, unless the driver refused it in order to have it prepared first.
func (c *counter) count(err error) {
	if err != driver.ErrSkip { //nolint:errorlint // the driver never wraps it
		c.n.Add(1)
	}
}

// PrepareContext implements driver.ConnPrepareContext.
func (d countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := d.driven.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return countedStmt{stmt.(drivenStmt), d.c}, nil
}

type drivenStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countedStmt struct {
	drivenStmt
	c *counter
}

// ExecContext implements driver.StmtExecContext.
func (s countedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.c.n.Add(1)
	return s.drivenStmt.ExecContext(ctx, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s countedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.c.n.Add(1)
	return s.drivenStmt.QueryContext(ctx, args)
}
