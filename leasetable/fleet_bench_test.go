package leasetable_test

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkFleet compares Lockers as many processes have them with as many connections that wait in the server's own
// queue.
func BenchmarkFleet(b *testing.B) {
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			db := startDurable(b, engine, sqltest.Setting("max_connections", "1000"))
			locktest.Fleet{
				Locker: func(b *testing.B) locktest.Locker { return newFleetLocker(b, db.DSN) },
				Bare:   func(b *testing.B) locktest.Bare { return newQueue(b, db) },
				Far: func(b *testing.B, via func(string) string) (locktest.Locker, locktest.Bare) {
					b.Helper()
					far := *db
					far.DSN = viaOf(b, db, via)
					pool, err := sqlx.Open(db.DriverName(), far.DSN)
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = pool.Close() })
					far.DB = pool
					return newFleetLocker(b, far.DSN), newQueue(b, &far)
				},
				Counts: newCounts(b, db),
			}.Run(b)
		})
	}
}

func newFleetLocker(b *testing.B, dsn string) locktest.Locker {
	b.Helper()
	l, err := leasetable.New(dsn, leasetable.WithLogger(nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() }) // the benchmark is over
	return ofAnyKind(l)
}

// viaOf returns the DSN of a database by way of another host.
func viaOf(b *testing.B, db *sqltest.Database, via func(string) string) string {
	b.Helper()
	if db.Engine == sqltest.EnginePostgres {
		u, err := url.Parse(db.DSN)
		if err != nil {
			b.Fatal(err)
		}
		u.Host = via(u.Host)
		return u.String()
	}
	config, err := gomysql.ParseDSN(db.DSN)
	if err != nil {
		b.Fatal(err)
	}
	config.Addr = via(config.Addr)
	return config.FormatDSN()
}

// counts counts on a connection of its own, to another database, so that nothing it does is counted on PostgreSQL.
type counts struct {
	conn     *sql.Conn
	engine   sqltest.Engine
	database string
}

func newCounts(b *testing.B, db *sqltest.Database) counts {
	b.Helper()
	c := counts{engine: db.Engine}
	query, dsn := "SELECT DATABASE()", db.DSN
	if db.Engine == sqltest.EnginePostgres {
		query = "SELECT current_database()"
		u, err := url.Parse(db.DSN)
		if err != nil {
			b.Fatal(err)
		}
		u.Path = "/postgres"
		dsn = u.String()
	}
	if err := db.GetContext(b.Context(), &c.database, query); err != nil {
		b.Fatal(err)
	}
	pool, err := sql.Open(db.DriverName(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = pool.Close() })
	if c.conn, err = pool.Conn(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.conn.Close() })
	return c
}

// Connections counts all connections to the database on PostgreSQL, and to the server elsewhere.
func (c counts) Connections(ctx context.Context) (n int, err error) {
	if c.engine == sqltest.EnginePostgres {
		err = c.conn.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE datname = $1", c.database).Scan(&n)
		return n, err
	}
	return c.status(ctx, "GLOBAL", "Threads_connected")
}

// Statements counts transactions on PostgreSQL, one per statement. A session reports them when it ends.
func (c counts) Statements(ctx context.Context) (n int, err error) {
	if c.engine == sqltest.EnginePostgres {
		err = c.conn.QueryRowContext(ctx,
			"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1", c.database).Scan(&n)
		return n, err
	}
	all, errAll := c.status(ctx, "GLOBAL", "Questions")
	own, errOwn := c.status(ctx, "SESSION", "Questions")
	return all - own, errors.Join(errAll, errOwn)
}

func (c counts) status(ctx context.Context, scope, variable string) (n int, err error) {
	var name string
	err = c.conn.QueryRowContext(ctx, "SHOW "+scope+" STATUS LIKE '"+variable+"'").Scan(&name, &n)
	return n, err
}
