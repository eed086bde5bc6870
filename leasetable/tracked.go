package leasetable

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"time"
)

// driverConn is what a connection of a driver can do, besides what is asked of it one by one.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// tracked is a connection of a pool, which notes whether the server answers. When it did not, the other connections that were opened
// before are not used any more: each would cost another timeout.
type tracked struct {
	driverConn
	pool    *pool
	number  int64 // of all that were opened
	hurried bool  // it waits for no row; see lent

	generation int64 // of the last answer
}

// health is whether a pool's connections are answered.
type health struct {
	generation atomic.Int64 // rises when all connections that are not in use are to be given up
	answers    atomic.Int64 // counts them
}

// silence is how long a statement must have waited for an answer to say something of other connections. Callers may have less time.
const silence = time.Second

// track returns a new connection of p.
func (p *pool) track(dc driver.Conn) driver.Conn {
	number := p.opened.Add(1)
	p.health.answers.Add(1)
	p.use(number)
	c, ok := dc.(driverConn)
	if !ok {
		return dc
	}
	p.tracked.Add(1)
	return &tracked{driverConn: c, pool: p, number: number, generation: p.health.generation.Load()}
}

// use notes that statements of p run on the connection with a number. A later one may lead to another server.
func (p *pool) use(number int64) {
	for latest := p.latest.Load(); latest < number && !p.latest.CompareAndSwap(latest, number); latest = p.latest.Load() {
	}
}

// giveUp has p use none of its connections any more that nobody uses now.
func (p *pool) giveUp() { p.health.generation.Add(1) }

// Close implements driver.Conn. It cannot fail: nothing depends on a session but its statement, and the server may have ended it.
func (c *tracked) Close() error {
	c.pool.tracked.Add(-1)
	_ = c.driverConn.Close()
	return nil
}

// asked is when a statement was sent.
type asked struct {
	at      time.Time
	answers int64 // that there were before
}

func (c *tracked) ask() asked { return asked{time.Now(), c.pool.health.answers.Load()} }

// told notes what came of a statement.
func (c *tracked) told(ctx context.Context, a asked, err error) {
	h := &c.pool.health
	switch {
	case err == nil:
		h.answers.Add(1)
		c.generation = h.generation.Load()
	case !errors.Is(ctx.Err(), context.DeadlineExceeded), h.answers.Load() != a.answers:
	case c.pool.renews(): // nobody but this package bounds a renewal
		c.pool.giveUp()
		c.pool.loan.from.giveUp()
	case time.Since(a.at) >= silence:
		c.pool.giveUp()
	}
}

// ExecContext implements driver.ExecerContext.
func (c *tracked) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	a := c.ask()
	result, err := c.driverConn.ExecContext(ctx, query, args)
	c.told(ctx, a, err)
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *tracked) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	a := c.ask()
	rows, err := c.driverConn.QueryContext(ctx, query, args)
	c.told(ctx, a, err)
	return rows, err
}

// BeginTx implements driver.ConnBeginTx.
func (c *tracked) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	a := c.ask()
	tx, err := c.driverConn.BeginTx(ctx, opts)
	c.told(ctx, a, err)
	return tx, err
}

// ResetSession implements driver.SessionResetter.
func (c *tracked) ResetSession(ctx context.Context) error {
	if c.generation != c.pool.health.generation.Load() {
		return driver.ErrBadConn
	}
	r, ok := c.driverConn.(driver.SessionResetter)
	if !ok {
		return nil
	}
	a := c.ask()
	err := r.ResetSession(ctx)
	if err != nil { // it may have asked the server
		c.told(ctx, a, err)
	}
	return err
}

// IsValid implements driver.Validator.
func (c *tracked) IsValid() bool {
	v, ok := c.driverConn.(driver.Validator)
	return !ok || v.IsValid()
}

// CheckNamedValue implements driver.NamedValueChecker.
func (c *tracked) CheckNamedValue(nv *driver.NamedValue) error {
	if ch, ok := c.driverConn.(driver.NamedValueChecker); ok {
		return ch.CheckNamedValue(nv)
	}
	return driver.ErrSkip
}
