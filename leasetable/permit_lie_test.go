package leasetable_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// lying opens connections, one of which reports that a transaction was rolled back although it was committed, as a
// cluster could do.
type lying struct {
	driver.Connector
	lies *atomic.Int32 // how many commits until then
}

func (l lying) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := l.Connector.Connect(ctx)
	return lyingConn{c.(inner), l.lies}, err
}

// inner is the interface of a connection of the MySQL driver.
type inner interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Validator
	driver.SessionResetter
	driver.NamedValueChecker
}
type lyingConn struct {
	inner
	lies *atomic.Int32 // how many commits until then
}

func (c lyingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.inner.ExecContext(ctx, query, args)
	if err == nil && query == "COMMIT" && c.lies.Add(-1) == 0 {
		return nil, &mysql.MySQLError{Number: 1213, Message: "deadlock"}
	}
	return result, err
}

func TestAPermitThatWasTakenAgainstTheAnswerIsNotLost(t *testing.T) {
	t.Parallel()
	servers := maps.Clone(databases)
	delete(servers, "PostgreSQL") // it uses a single statement
	delete(servers, "SQLite")     // it is not a server
	on(t, servers, func(t *testing.T, db *sqltest.Database) {
		cfg, err := mysql.ParseDSN(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		connector, err := mysql.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var lies atomic.Int32
		pool := sqlx.NewDb(sql.OpenDB(lying{connector, &lies}), "mysql")
		t.Cleanup(func() { _ = pool.Close() })
		l := newLocker(t, pool, leasetable.WithTTL(time.Hour))
		lies.Store(1)
		lease := take(t, l, "x", leasetable.WithLimit(1))
		if lies.Load() > 0 {
			t.Error("no lie was told")
		}
		mustBeHeld(t, newLocker(t, db.DB), "x")
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		take(t, newLocker(t, db.DB), "x", leasetable.WithLimit(1))
	})
}
