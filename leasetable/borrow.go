package leasetable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// A server may have no connection left but the one that a Locker has, or another one may take long to open. Then the statements of one
// pool run on a connection of the other, so that with one connection everything goes on.

// loan is what a pool borrows of the other one, and lends to it.
type loan struct {
	from *pool // the other pool

	// Of the pool for renewals; others have none of these.
	turn   chan struct{}       // has room for the one who borrows the connection
	leases func() renewalNeeds // what it is needed for

	told func() // is called when the server is full

	at atomic.Int64 // when the server was full last; 0: never

	mu    sync.Mutex
	err   error     // guarded by mu: the error of that
	until time.Time // guarded by mu: no other attempt to connect is made before
}

// keeping is what is known of the leases of a Locker together. It is zero if there are none.
type renewalNeeds struct {
	sure time.Duration // for how long they are sure to last
	ttl  time.Duration // the shortest
	pace time.Duration // the longest time that a renewal took last
}

// spare is for how long the connection for renewals can be lent, or 0 if it cannot: a statement that does not end in time costs the connection.
func (k renewalNeeds) spare() time.Duration {
	switch {
	case k.ttl == 0:
		return attemptTimeout
	case k.sure < k.ttl/4, k.sure/2 < 4*k.pace: // renewals fail, or answers take long
		return 0
	}
	return min(attemptTimeout, k.sure/2)
}

// fullPause bounds how often a server that is full is asked for a connection.
const fullPause = 400 * time.Millisecond

// crowded are the codes of servers, and of poolers, that let nobody in for now.
var limitCodes = map[string]bool{
	"53300": true, "53200": true, "08P01": true, // PostgreSQL, when its table of locks is full, PgBouncer
	"mysql 1040": true, "mysql 1203": true, "mysql 1226": true,
}

// full reports whether err says that the server, or a pooler, has no connection for this user.
func isFull(err error) bool { return limitCodes[codeOf(err)] }

// renews reports whether p is for renewals.
func (p *pool) renews() bool { return p.loan.turn != nil }

// refused returns the error of a server that was full just now.
func (p *pool) refused() error {
	lo := &p.loan
	lo.mu.Lock()
	defer lo.mu.Unlock()
	if time.Now().Before(lo.until) {
		return lo.err
	}
	return nil
}

// noteFull notes that the server was full.
func (p *pool) noteFull(err error) {
	pause := fullPause
	if ttl := p.renewalNeeds().ttl; ttl > 0 {
		pause = min(pause, ttl/10)
	}
	lo := &p.loan
	now := time.Now()
	lo.at.Store(now.UnixNano())
	lo.mu.Lock()
	lo.err, lo.until = err, now.Add(jitter(pause))
	lo.mu.Unlock()
	if lo.told != nil {
		lo.told()
	}
}

// lacks reports whether there was no connection to be had lately.
func (p *pool) limited() bool {
	at := p.loan.at.Load()
	return at != 0 && time.Since(time.Unix(0, at)) < idleTime
}

// keeping is what p is needed for, if it is for renewals.
func (p *pool) renewalNeeds() renewalNeeds {
	if p.loan.leases == nil {
		return renewalNeeds{}
	}
	return p.loan.leases()
}

// borrowsFirst reports whether a renewal is to go by a connection of the other pool, which is there, and not wait for a new one. That
// is being opened then.
func (p *pool) borrowsFirst() bool {
	if p.renewalNeeds().ttl == 0 || p.loan.from.Stats().Idle == 0 || p.dialer.hasReady() {
		return false
	}
	p.prepare()
	return true
}

// prepare has a connection opened for the next statement that needs one.
func (p *pool) prepare() {
	if p.refused() == nil {
		p.dialer.prepare()
	}
}

// connectPatience is how long a statement waits for a new connection before it borrows one.
const connectPatience = time.Second

// errConnecting is the error of a statement that could not borrow one then. Nothing was sent.
var errConnecting = &dbError{err: fmt.Errorf("%w: connecting is under way", errSlow), outcomeKnown: true, transient: true}

// patience bounds ctx if there is a connection to borrow.
func (p *pool) connectPatience(ctx context.Context) (context.Context, context.CancelFunc) {
	if p.renews() || !p.lenderOpen() || p.loan.from.renewalNeeds().spare() == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, connectPatience)
}

// lenderOpen reports whether the other pool has a connection, or opens one.
func (p *pool) lenderOpen() bool {
	return p.loan.from != nil && p.loan.from.Stats().OpenConnections > 0
}

// borrow returns a connection that is one of the other pool's when it is used. Why there is no new one of p's own is the error if
// there are none at all.
func (p *pool) borrow(why error) (driver.Conn, error) {
	switch {
	case p.lenderOpen():
		return &lent{to: p, from: p.loan.from, why: why}, nil
	case p.narrow():
		return nil, driver.ErrBadConn // another one is asked for
	}
	return nil, why
}

// borrowing is the key of contexts under which a pool opens no connection.
type borrowing struct{}

// errNotLent is the error of a pool that has no connection to lend.
var errNotLent = errors.New("leasetable: there is no connection to borrow")

// lent is a connection that is borrowed when it is used first, and given back when it is closed, which is after one use. The one for
// renewals is lent to one at a time, and for half the time for which the leases are sure to last: a renewal that is
// due finds nobody else in line. On the server who has borrowed it hardly waits for a row.
type lent struct {
	to, from *pool
	why      error

	conn   *sql.Conn // nil until it is used
	dc     driverConn
	until  time.Time // when its use is to have ended; zero: there is no limit
	cancel []context.CancelFunc
}

// inHurry has a session wait for rows for a moment only: MySQL knows no shorter one.
var inHurry = map[schema.Dialect]string{
	schema.Postgres: "SET lock_timeout = 50",
	schema.MySQL:    "SET SESSION innodb_lock_wait_timeout = 1 /*M! - 1 */",
}

// use returns the connection, and the context for a statement on it.
func (l *lent) use(ctx context.Context) (driverConn, context.Context, error) {
	if l.conn == nil {
		if err := l.begin(ctx); err != nil {
			return nil, nil, err
		}
	}
	if l.until.IsZero() {
		return l.dc, ctx, nil
	}
	ctx, cancel := context.WithDeadline(ctx, l.until)
	l.cancel = append(l.cancel, cancel) // rows are read after the statement
	return l.dc, ctx, nil
}

func (l *lent) begin(ctx context.Context) error {
	if l.from.renews() {
		select {
		case l.from.loan.turn <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	err := l.take(ctx)
	if err != nil {
		l.giveTurn()
	}
	return err
}

func (l *lent) take(ctx context.Context) error {
	conn, err := l.from.Conn(context.WithValue(ctx, borrowing{}, true))
	switch {
	case ctx.Err() != nil && err != nil:
		return ctx.Err()
	case err != nil:
		return l.why
	}
	_ = conn.Raw(func(dc any) error { // it is l's until conn is closed
		l.dc, _ = dc.(driverConn)
		return nil
	})
	if l.dc == nil {
		_ = conn.Close() // into its pool
		return l.why
	}
	l.conn = conn
	if c, ok := l.dc.(*tracked); ok {
		l.to.use(c.number)
		err = l.hurry(ctx, c)
	}
	if err != nil {
		_ = conn.Close() // into its pool
		l.conn, l.dc = nil, nil
	}
	return err
}

// hurry bounds what is done on the connection for renewals.
func (l *lent) hurry(ctx context.Context, c *tracked) error {
	if !l.from.renews() {
		return nil
	}
	spare := l.from.renewalNeeds().spare()
	if spare == 0 {
		return l.why
	}
	l.until = time.Now().Add(spare)
	text := inHurry[l.from.dialect]
	if c.hurried || text == "" || l.from.pooler.Load() {
		return nil
	}
	ctx, cancel := context.WithDeadline(ctx, l.until)
	defer cancel()
	err := execOn(ctx, c, text)
	c.hurried = err == nil
	return err
}

func (l *lent) giveTurn() {
	if l.from.renews() {
		<-l.from.loan.turn
	}
}

// Close implements driver.Conn.
func (l *lent) Close() error {
	if l.conn == nil {
		return nil
	}
	for _, cancel := range l.cancel {
		cancel()
	}
	err := l.conn.Close() // into its pool, for a renewal that is due
	l.conn = nil
	l.giveTurn()
	return err
}

// IsValid implements driver.Validator.
func (l *lent) IsValid() bool { return false }

// ExecContext implements driver.ExecerContext.
func (l *lent) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	dc, ctx, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	return dc.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (l *lent) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	dc, ctx, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	return dc.QueryContext(ctx, query, args)
}

// BeginTx implements driver.ConnBeginTx.
func (l *lent) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	dc, ctx, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	return dc.BeginTx(ctx, opts)
}

// Begin implements driver.Conn. BeginTx is called instead.
func (l *lent) Begin() (driver.Tx, error) { return l.BeginTx(context.Background(), driver.TxOptions{}) }

// PrepareContext implements driver.ConnPrepareContext.
func (l *lent) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	dc, ctx, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	return dc.PrepareContext(ctx, query)
}

// Prepare implements driver.Conn. PrepareContext is called instead.
func (l *lent) Prepare(query string) (driver.Stmt, error) {
	return l.PrepareContext(context.Background(), query)
}
