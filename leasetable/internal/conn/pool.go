package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// Pool is a small private connection pool.
type Pool struct {
	*sqlx.DB
	*findings
	dialect schema.Dialect
	dialer  *dialer
	Conns   int
	latest  atomic.Int64 // the number of the latest connection that was used
	tracked atomic.Int64 // how many open connections are its own

	generation atomic.Int64 // incremented to give up all connections that are not in use
	answers    atomic.Int64 // the number of answers of the server

	loan loan
}

// findings are what the connections of both pools have found out. The pools share them, since one pool runs statements
// on connections of the other.
type findings struct {
	opened atomic.Int64 // counts the connections
	pooler atomic.Bool  // one of them was not known to lead to PostgreSQL itself

	unreplicated atomic.Int64 // see Replicated
	galera       atomic.Bool  // one of them led to a Galera node
	mariadb      atomic.Bool  // they lead to MariaDB
}

// Limit is how many connections a Locker may have: one for renewals, half of them for turns, the others for work.
type Limit int

// DefaultLimit leaves work six connections.
const DefaultLimit Limit = 14

const (
	workConns    = 6 // at most, and at the default limit
	renewalConns = 1
)

// Turns is how many of the connections may stand in the server's queue.
func (n Limit) Turns() int { return min(int(n)/2, int(DefaultLimit)/2) }

// Work is how many of the connections are for work. If there are none, work borrows the connection for renewals.
func (n Limit) Work() int { return max(0, min(int(n)-renewalConns-n.Turns(), workConns)) }

// IdleTime is for how long an unused connection is kept, and WorkIdleTime for how long one for work is: other programs
// may have none. WorkIdleTime is longer than the pauses of a waiter, which would need a new connection for each look.
const (
	IdleTime     = 5 * time.Second
	WorkIdleTime = 12 * time.Second
)

func (p *Pool) open(c driver.Connector, d schema.Dialect, conns int) {
	p.dialect, p.Conns = d, conns
	settled := &settledConnector{Connector: c, pool: p}
	p.dialer = newDialer(settled.open)
	db := sql.OpenDB(settled)
	db.SetMaxOpenConns(max(conns, 1)) // 0 would mean no limit; see settledConnector.Connect
	db.SetMaxIdleConns(max(conns, 1))
	p.DB = sqlx.NewDb(db, "") // nothing is bound by name
}

// giveBack closes the unused connections.
func (p *Pool) giveBack() {
	p.dialer.drop()
	p.SetMaxIdleConns(0)
	p.SetMaxIdleConns(max(p.Conns, 1))
}

// settings make every connection behave alike, whatever the DSN or the server's defaults say: see chapter 7 of
// docs/design.md. On PostgreSQL a session may belong to a pooler and is left alone, but see lookUpByIndex.
var settings = map[schema.Dialect][]string{
	schema.MySQL: {
		// The meaning of a statement, the rows it returns, and its commit may depend on all of these.
		"SET SESSION sql_mode = TRADITIONAL, NAMES utf8mb4, autocommit = 1, completion_type = 0" +
			", sql_select_limit = 18446744073709551615, sql_big_selects = 1, sql_safe_updates = 0" +
			// Time limits that are meant for the application's statements must not hit ours.
			", innodb_lock_wait_timeout = 2 /*!80000 , max_execution_time = 0 */" +
			// Otherwise a statement goes on waiting for a table after its connection was cut off.
			", lock_wait_timeout = 2" +
			// MariaDB turns a long list of names into a table, and may read the whole lock table to find them. A
			// variable that a statement creates is a constant within that statement, so @told is created here: see
			// many_maria.go.
			"/*M! , max_statement_time = 0, in_predicate_conversion_threshold = 0, @told = '-' */",
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
	},
	schema.SQLite: {"PRAGMA busy_timeout = 100"},
}

// settledConnector applies the settings to every connection that it opens.
type settledConnector struct {
	driver.Connector
	pool *Pool
}

// Connect implements driver.Connector. If ctx ends, the dial goes on. The connection may be borrowed from the other
// pool.
func (s *settledConnector) Connect(ctx context.Context) (driver.Conn, error) {
	p := s.pool
	switch {
	case ctx.Value(borrowing{}) != nil:
		return nil, errNotLent
	case p.borrowsFirst(): //nolint:contextcheck // the dial outlasts its callers
		return p.borrow(driver.ErrBadConn)
	case p.Conns == 0:
		return &lent{to: p, from: p.loan.from, why: errAlone}, nil
	}
	if err := p.loan.refused(); err != nil {
		return p.borrow(err)
	}
	wait, cancel := p.connectPatience(ctx)
	defer cancel()
	conn, err := p.dialer.dial(wait)
	switch {
	case err == nil:
		return p.track(conn), nil
	case wait.Err() != nil && ctx.Err() == nil:
		return p.borrow(errConnecting)
	case dberr.IsFull(err):
		p.loan.noteFull(err)
		return p.borrow(err)
	}
	return nil, err
}

// narrow limits the pool to its open connections for IdleTime, so that callers wait for one of them. It reports whether
// there are any.
func (p *Pool) narrow() bool {
	n := int(p.tracked.Load())
	if n == 0 {
		return false
	}
	p.SetMaxOpenConns(n)
	time.AfterFunc(IdleTime, func() {
		p.SetMaxOpenConns(max(p.Conns, 1))
		p.SetMaxIdleConns(max(p.Conns, 1))
	})
	return true
}

// errAlone is the error of work that may have no connection of its own, when that for renewals is not lent.
var errAlone = &dberr.Error{Err: fmt.Errorf("%w: renewals need the only connection that this Locker may have", dberr.ErrSlow), OutcomeKnown: true, Transient: true}

// Close implements io.Closer, which database/sql calls when the pool is closed.
func (s *settledConnector) Close() error {
	s.pool.dialer.close()
	return nil
}

func (s *settledConnector) open(ctx context.Context) (driver.Conn, error) {
	dc, err := connect(ctx, s.Connector)
	if err != nil {
		return nil, dberr.NotConnected(err, s.pool.opened.Load() > 0)
	}
	settled, err := s.pool.settle(ctx, dc)
	if err != nil {
		_ = dc.Close() // the first error says more
	}
	return settled, err
}

// settle applies the settings to a new connection, and wraps it.
func (p *Pool) settle(ctx context.Context, dc driverConn) (driver.Conn, error) {
	texts, columns := p.settings()
	if err := execOn(ctx, dc, texts...); err != nil {
		return nil, err
	}
	switch p.dialect {
	case schema.Postgres:
		countUnreplicated(dc, &p.unreplicated)
		return newPostgresConn(ctx, dc, &p.pooler, columns...)
	case schema.MySQL:
		if err := p.findGalera(ctx, dc); err != nil {
			return nil, err
		}
		return newMySQLConn(dc), nil
	}
	return dc, nil
}

// Connected returns when there is a connection. It asks in short attempts, so that other callers get their chance, such
// as renewals on the only connection of a pool. The dial goes on meanwhile.
func (p *Pool) Connected(ctx context.Context) error {
	for {
		err := dberr.Once(ctx, dberr.AttemptTimeout, func(ctx context.Context) error {
			conn, err := p.Conn(ctx)
			if err != nil {
				return dberr.Classify(err)
			}
			return conn.Close() // into the pool
		})
		if !errors.Is(err, dberr.ErrSlow) || ctx.Err() != nil {
			return err
		}
	}
}

// execOn runs statements, one after the other, up to the first that fails.
func execOn(ctx context.Context, dc driver.ExecerContext, texts ...string) error {
	for _, text := range texts {
		if _, err := dc.ExecContext(ctx, text, nil); err != nil {
			return err
		}
	}
	return nil
}

// ErrUnsent is a driver.ErrBadConn that came before anything was sent: the statement can run on another connection. Some
// drivers (lib/pq) also return driver.ErrBadConn when the connection ends before the answer to a statement has come.
var ErrUnsent = fmt.Errorf("%w: nothing was sent", driver.ErrBadConn)

// unsent returns an error that came before anything was sent.
func unsent(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return ErrUnsent
	}
	return err
}

// Number asks the driver directly. database/sql starts a goroutine for every query whose context can end, and that
// goroutine needs a processor. After ErrUnsent the statement can be repeated.
func (p *Pool) Number(ctx context.Context, text string, args []any) (found bool, n int64, err error) {
	conn, err := p.Conn(ctx)
	if err != nil {
		return false, 0, unsent(err)
	}
	defer conn.Close() // into the pool
	err = conn.Raw(func(dc any) error {
		named := make([]driver.NamedValue, len(args))
		for i, arg := range args {
			v, err := driver.DefaultParameterConverter.ConvertValue(arg)
			if err != nil {
				return err
			}
			named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
		}
		row, err := lastRow(ctx, dc.(driver.QueryerContext), text, named...)
		if row == nil || err != nil {
			return err
		}
		if n, found = row[0].(int64); !found {
			return fmt.Errorf("leasetable: the driver gives %T for an integer", row[0])
		}
		return nil
	})
	return found, n, err
}

// lastRow asks the driver on one of its connections, and returns the last row of the answer, or nil. It reads to the
// end, since the commit, and its failure, come after the rows.
func lastRow(
	ctx context.Context, dc driver.QueryerContext, text string, args ...driver.NamedValue,
) (last []driver.Value, err error) {
	if err = eachRow(ctx, dc, text, args, func(row []driver.Value) { last = row }); err != nil {
		return nil, err
	}
	return last, nil
}

// eachRow asks like lastRow, and shows f each row of the answer. The next one overwrites it.
func eachRow(ctx context.Context, dc driver.QueryerContext, text string, args []driver.NamedValue, f func(row []driver.Value)) error {
	rows, err := dc.QueryContext(ctx, text, args)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	for err = rows.Next(row); err == nil; err = rows.Next(row) {
		f(row)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
