package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"time"
)

// driverConn has the methods that every connection of a driver needs.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// connect opens a connection that has these methods. Any other is refused: database/sql would do without them for its own
// callers only.
func connect(ctx context.Context, c driver.Connector) (driverConn, error) {
	dc, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	able, ok := dc.(driverConn)
	if !ok {
		_ = dc.Close() // nobody has used it
		return nil, fmt.Errorf("%T: %w", dc, driver.ErrSkip)
	}
	return able, nil
}

// plainConn is a driver's connection, with the methods that a driver may leave out.
type plainConn struct{ driverConn }

func (c plainConn) ResetSession(ctx context.Context) error {
	if r, ok := c.driverConn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c plainConn) IsValid() bool {
	v, ok := c.driverConn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c plainConn) CheckNamedValue(nv *driver.NamedValue) error {
	if ch, ok := c.driverConn.(driver.NamedValueChecker); ok {
		return ch.CheckNamedValue(nv)
	}
	return driver.ErrSkip
}

// tracked is a connection of a pool. It notes whether the server answers. After a statement that was not answered, the
// pool no longer uses the connections that were opened before: each would cost another timeout.
type tracked struct {
	plainConn
	pool    *Pool
	number  int64 // counts all connections that were opened
	hurried bool  // its session waits for a row lock only for a moment; see inHurry

	generation int64 // that of the pool at the last answer
}

// silence is how long a statement must have waited for an answer before that says something about other connections.
// The deadline of a caller may be shorter.
const silence = time.Second

// track wraps a new connection of p.
func (p *Pool) track(dc driver.Conn) driver.Conn {
	number := p.opened.Add(1)
	p.answers.Add(1)
	p.use(number)
	p.tracked.Add(1)
	return &tracked{plainConn: plainConn{dc.(driverConn)}, pool: p, number: number, generation: p.generation.Load()}
}

// use notes that statements of p run on the connection with this number. A later connection may lead to another server.
func (p *Pool) use(number int64) {
	for latest := p.latest.Load(); latest < number && !p.latest.CompareAndSwap(latest, number); latest = p.latest.Load() {
	}
}

// giveUp makes p discard the connections that are not in use now.
func (p *Pool) giveUp() { p.generation.Add(1) }

// Close implements driver.Conn. It returns no error: nothing but its statement depends on a session, and the server may
// have ended the session.
func (c *tracked) Close() error {
	c.pool.tracked.Add(-1)
	_ = c.driverConn.Close()
	return nil
}

// asked says when a statement was sent.
type asked struct {
	at      time.Time
	answers int64 // the number of answers before
}

// Socket returns the socket of the connection, or nil if it is not known.
func (c *tracked) Socket() net.Conn {
	if known, ok := c.driverConn.(interface{ knownSocket() net.Conn }); ok {
		return known.knownSocket()
	}
	return nil
}

func (c *tracked) ask() asked { return asked{time.Now(), c.pool.answers.Load()} }

// told notes the outcome of a statement.
func (c *tracked) told(ctx context.Context, a asked, err error) {
	switch {
	case err == nil:
		c.pool.answers.Add(1)
		c.generation = c.pool.generation.Load()
	case !errors.Is(ctx.Err(), context.DeadlineExceeded), c.pool.answers.Load() != a.answers:
	case c.pool.loan.renews(): // only this package bounds a renewal
		c.pool.giveUp()
		c.pool.loan.from.giveUp()
	case time.Since(a.at) >= silence:
		c.pool.giveUp()
	}
}

func (c *tracked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	a := c.ask()
	result, err := c.driverConn.ExecContext(ctx, query, args)
	c.told(ctx, a, err)
	return result, err
}

func (c *tracked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	a := c.ask()
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	c.told(ctx, a, err)
	return rows, err
}

func (c *tracked) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	a := c.ask()
	tx, err := c.driverConn.BeginTx(ctx, opts)
	c.told(ctx, a, err)
	return tx, err
}

func (c *tracked) ResetSession(ctx context.Context) error {
	if c.generation != c.pool.generation.Load() {
		return driver.ErrBadConn
	}
	a := c.ask()
	err := c.plainConn.ResetSession(ctx)
	if err != nil { // the driver may have asked the server
		c.told(ctx, a, err)
	}
	return err
}
