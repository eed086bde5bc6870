package conn_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
)

// fragile is a stage whose connections panic at a statement, once.
type fragile struct {
	*stage
	at string
}

func (f *fragile) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := f.stage.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &fragileConn{dc.(*staged), f}, nil
}

type fragileConn struct {
	*staged
	of *fragile
}

func (c *fragileConn) run(query string) {
	if query == c.of.at {
		c.of.at = ""
		panic("a hook of the driver")
	}
}

func (c *fragileConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	c.run(query)
	return c.staged.ExecContext(ctx, query, args)
}

func (c *fragileConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.run(query)
	return c.staged.QueryContext(ctx, query, args)
}

// I38.
func TestAPanicOnTheConnectionForRenewalsKeepsItFromNobody(t *testing.T) {
	t.Parallel()
	exec := func(db *sqlx.DB) { _, _ = db.ExecContext(context.Background(), "work") }
	query := func(db *sqlx.DB) {
		if rows, err := db.QueryContext(context.Background(), "work"); err == nil {
			_ = errors.Join(rows.Close(), rows.Err())
		}
	}
	for what, test := range map[string]struct {
		at  string
		run func(*sqlx.DB)
	}{
		"the statement before an exec": {conn.InHurry, exec},
		"an exec":                      {"work", exec},
		"the statement before a query": {conn.InHurry, query},
		"a query":                      {"work", query},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				s.most = 1
				f := &fragile{stage: s}
				p := conn.Open(f, "", conn.DefaultLimit)
				p.Lend(func() conn.RenewalNeeds { return conn.RenewalNeeds{Sure: time.Minute, TTL: time.Minute} }, func() {})
				mustRunOn(t, p.Renewals.DB, "renew")
				conn.HurryBorrowers(p.Renewals)
				f.at = test.at
				func() {
					defer func() {
						if recover() == nil {
							t.Error("it did not panic")
						}
					}()
					test.run(p.Work.DB)
				}()
				mustRunOn(t, p.Renewals.DB, "renew again")
				mustRunOn(t, p.Work.DB, "work again")
				if s.on["renew again"] == s.on["renew"] {
					t.Error("the connection on which it panicked is used again")
				}
				if err := p.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
