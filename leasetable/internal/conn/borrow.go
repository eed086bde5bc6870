package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// If a server has no connection left, or takes long to open one, the statements of one pool run on a connection of the other:
// see Connections in chapter 6 of docs/design.md.

// lent is a connection that is borrowed on its first use and given back on Close, which database/sql calls after one
// use. A statement on the renewal connection hardly waits for row locks (see inHurry).
type lent struct {
	driver.Conn // nil: its methods are replaced, or their variants with a context are called instead

	to, from *Pool
	why      error

	conn   *sql.Conn // nil until the first use
	dc     *tracked
	until  time.Time // when its use must have ended; zero: no limit
	cancel []context.CancelFunc
}

// inHurry makes the lock waits of a session short. MySQL knows no shorter limit than 1 s; for a row MariaDB gets 0.
var inHurry = map[schema.Dialect]string{
	schema.Postgres: "SET lock_timeout = 50",
	schema.MySQL:    "SET SESSION lock_wait_timeout = 1, innodb_lock_wait_timeout = 1 /*M! - 1 */",
}

// runOn runs f, which uses l.dc, with the context for a statement on it. If a driver panics, database/sql may forget l without
// closing it.
func runOn[T any](ctx context.Context, l *lent, f func(context.Context) (T, error)) (nothing T, err error) {
	if l.conn == nil {
		if err := l.begin(ctx); err != nil {
			return nothing, unsent(err)
		}
	}
	if !l.until.IsZero() {
		bounded, cancel := context.WithDeadline(ctx, l.until)
		l.cancel = append(l.cancel, cancel) // later, because rows are read after the statement
		ctx = bounded
	}
	returned := false
	defer func() {
		if !returned {
			discard(l.conn)
			_ = l.Close()
		}
	}()
	v, err := f(ctx)
	returned = true
	return v, err
}

// begin gets the connection for renewals for one statement. One statement at a time asks for it (I38).
func (l *lent) begin(ctx context.Context) error {
	if err := l.from.loan.takeTurn(ctx); err != nil {
		return err
	}
	defer func() {
		if l.conn == nil { // also if a driver panics
			l.from.loan.giveTurn()
		}
	}()
	return l.take(ctx)
}

// take gets a connection that the other pool has. Only a pool that has none of its own makes the other one open one.
func (l *lent) take(ctx context.Context) error {
	asking := ctx
	if l.to.Conns > 0 {
		asking = context.WithValue(ctx, borrowing{}, true)
	}
	conn, err := l.from.Conn(asking)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return ctx.Err()
	case l.to.Conns == 0:
		return err
	default:
		return l.why
	}
	returned := false
	defer func() {
		if !returned { // a driver panicked
			discard(conn)
		}
	}()
	if l.to.Conns == 0 {
		l.from.giveBackLater()
	}
	_ = conn.Raw(func(dc any) error { // dc is l's until conn is closed
		l.dc, _ = dc.(*tracked) // nil if it is borrowed itself
		return nil
	})
	err = l.why
	if l.dc != nil {
		l.to.use(l.dc.number)
		err = l.hurry(ctx)
	}
	returned = true
	if err != nil {
		_ = conn.Close() // into its pool
		return err
	}
	l.conn = conn
	return nil
}

// discard closes a connection on which a statement did not return.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// hurry bounds the use of the renewal connection: its time, and its waits for locks.
func (l *lent) hurry(ctx context.Context) error {
	if !l.from.loan.renews() {
		return nil
	}
	spare := l.from.loan.renewalNeeds().spare()
	if spare == 0 {
		return l.why
	}
	l.until = time.Now().Add(spare)
	text := inHurry[l.from.dialect]
	if l.dc.hurried || text == "" || l.from.pooler.Load() {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, l.until)
	defer cancel()
	err := execOn(ctx, l.dc, text)
	l.dc.hurried = err == nil
	return err
}

func (l *lent) Close() error {
	if l.conn == nil {
		return nil
	}
	for _, cancel := range l.cancel {
		cancel()
	}
	err := l.conn.Close() // into its pool, for a renewal that is due
	l.conn = nil
	l.from.loan.giveTurn()
	return err
}

func (l *lent) IsValid() bool { return false }

func (l *lent) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return runOn(ctx, l, func(ctx context.Context) (driver.Result, error) { return l.dc.ExecContext(ctx, query, args) })
}

func (l *lent) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return runOn(ctx, l, func(ctx context.Context) (driver.Rows, error) { return l.dc.QueryContext(ctx, query, args) })
}

func (l *lent) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return runOn(ctx, l, func(ctx context.Context) (driver.Tx, error) { return l.dc.BeginTx(ctx, opts) })
}

func (l *lent) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	return runOn(ctx, l, func(ctx context.Context) (driver.Stmt, error) { return l.dc.PrepareContext(ctx, query) })
}
