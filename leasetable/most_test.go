package leasetable_test

import (
	"context"
	"database/sql/driver"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// peak counts the connections that are open, and the most that ever were.
type peak struct {
	driver.Connector

	mu        sync.Mutex
	now, most int           // guarded by mu
	slowest   time.Duration // guarded by mu: the longest step of what opened a connection, or of a statement
}

// took notes how long a step took that began at this time.
func (p *peak) took(began time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slowest = max(p.slowest, time.Since(began))
}

// mustBeAtMost checks how many connections there were. One that takes seconds to open, or to answer, is replaced by
// another one while it is still there. To open one takes some steps.
func (p *peak) mustBeAtMost(t *testing.T, most int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.most <= most:
	case p.slowest > 500*time.Millisecond:
		t.Logf("%d connections were open at a time, of which one took %v for one step", p.most, p.slowest)
	default:
		t.Errorf("%d connections were open at a time", p.most)
	}
}

func (p *peak) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now += n
	p.most = max(p.most, p.now)
}

// Connect implements driver.Connector.
func (p *peak) Connect(ctx context.Context) (driver.Conn, error) {
	defer p.took(time.Now())
	dc, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	p.add(1)
	return &peakConn{driven: dc.(driven), p: p}, nil
}

type peakConn struct {
	driven
	p    *peak
	once sync.Once
}

// Close implements driver.Conn.
func (c *peakConn) Close() error {
	c.once.Do(func() { c.p.add(-1) })
	return c.driven.Close()
}

// ExecContext implements driver.ExecerContext.
func (c *peakConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	defer c.p.took(time.Now())
	return c.driven.ExecContext(ctx, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *peakConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	defer c.p.took(time.Now())
	return c.driven.QueryContext(ctx, query, args)
}

// PrepareContext implements driver.ConnPrepareContext. On MySQL statements with arguments are prepared.
func (c *peakConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	defer c.p.took(time.Now())
	stmt, err := c.driven.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return peakStmt{stmt.(drivenStmt), c.p}, nil
}

type peakStmt struct {
	drivenStmt
	p *peak
}

// ExecContext implements driver.StmtExecContext.
func (s peakStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	defer s.p.took(time.Now())
	return s.drivenStmt.ExecContext(ctx, args)
}

// QueryContext implements driver.StmtQueryContext.
func (s peakStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	defer s.p.took(time.Now())
	return s.drivenStmt.QueryContext(ctx, args)
}

// withPeak opens db once more. The connections of Lockers that use it are counted.
func withPeak(t *testing.T, db *sqltest.Database) (*sqlx.DB, *peak) {
	t.Helper()
	p := new(peak)
	return openedBy(t, db, &p.Connector, p), p
}

// A Locker that waits, renews and serves many goroutines opens no more connections than it may.
func TestALockerOpensNoMoreConnectionsThanItMay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		for _, most := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprint(most), func(t *testing.T) {
				t.Parallel()
				counted, p := withPeak(t, db)
				l := newLocker(t, counted, leasetable.WithMaxConnections(most), leasetable.WithTTL(time.Hour)) // a late answer has a connection opened beside it
				name := func(i int) string { return fmt.Sprint(most, " ", i) }

				other := newLocker(t, db.DB)
				held := take(t, other, name(0))
				next := acquiring(l, name(0))
				eventually(t, func() bool { return leasetable.Waits(l, name(0)) })
				var all sync.WaitGroup
				for i := range 20 {
					all.Go(func() {
						lock, err := l.Acquire(t.Context(), name(i+1))
						if err != nil {
							t.Error(err)
							return
						}
						for _, err := range []error{lock.Renew(t.Context()), lock.Release(t.Context())} {
							if err != nil && !sqllock.IsRetryable(err) { // a busy machine may answer late
								t.Error(err)
							}
						}
					})
				}
				all.Wait()
				release(t, held)
				release(t, mustGet(t, next))
				p.mustBeAtMost(t, most)
			})
		}
	})
}

// A Locker whose only connections are those for renewals and for turns looks at names, though it has no lease.
func TestALockerThatMayHaveFewConnectionsNeedsNoLeaseToRead(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		for _, most := range []int{1, 2} {
			t.Run(fmt.Sprint(most), func(t *testing.T) {
				t.Parallel()
				counted, p := withPeak(t, db)
				waits := make(chan struct{}, 2)
				l := newLocker(t, counted, leasetable.WithMaxConnections(most), leasetable.WithTTL(time.Hour), // as above
					leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
						if e.Kind == event.Waiting {
							waits <- struct{}{}
						}
					}))
				names := []string{fmt.Sprint("x", most), fmt.Sprint("y", most)}
				var held []*leasetable.Lease
				var next []<-chan *leasetable.Lease
				for _, name := range names {
					if _, err := l.Inspect(t.Context(), name); err != nil {
						t.Fatal(err)
					}
					held = append(held, take(t, newLocker(t, db.DB), name))
					next = append(next, acquiring(l, name))
				}
				for range names { // each has claimed its name, which was held
					<-waits
				}
				eventually(t, func() bool { return leasetable.Leases(l) == 0 }) // nothing is claimed any more
				for i := range names {
					release(t, held[i])
				}
				for i := range names {
					release(t, mustGet(t, next[i]))
				}
				if _, err := l.Inspect(t.Context(), "x"); err != nil {
					t.Error(err)
				}
				eventually(t, func() bool { // nobody needs any more
					p.mu.Lock()
					defer p.mu.Unlock()
					return p.now == 0
				})
				p.mustBeAtMost(t, most)
			})
		}
	})
}

func TestALockerNeedsAConnection(t *testing.T) {
	t.Parallel()
	if _, err := leasetable.New("file:x.db", leasetable.WithMaxConnections(0)); err == nil {
		t.Error("a Locker without connections")
	}
}
