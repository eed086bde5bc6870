package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkLocker compares a Locker with the bare driver: statements that are prepared once, on a dedicated connection.
func BenchmarkLocker(b *testing.B) {
	for _, server := range []struct {
		name string
		open func(sqltest.TB, ...sqltest.Option) *sqltest.Database
	}{{"MySQL", sqltest.MySQL}, {"MariaDB", sqltest.MariaDB}} {
		b.Run(server.name, func(b *testing.B) {
			db := server.open(b)
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() })
			locktest.Bench{
				Locker:   func(b *testing.B) locktest.Locker { return newLocker(b, db) },
				Bare:     func(b *testing.B) locktest.Bare { return newBare(b, db.DSN) },
				Child:    func(job locktest.Job) []string { return childEnv(db.DSN, 15*time.Second, string(job)) },
				Observer: observer{conn},
			}.Run(b)
		})
	}
}

// BenchmarkFleet compares Lockers as many processes have them with as many bare connections.
func BenchmarkFleet(b *testing.B) {
	for _, server := range []struct {
		engine sqltest.Engine
		shared func(sqltest.TB, ...sqltest.Option) *sqltest.Database
	}{{sqltest.EngineMySQL, sqltest.MySQL}, {sqltest.EngineMariaDB, sqltest.MariaDB}} {
		b.Run(string(server.engine), func(b *testing.B) {
			var db *sqltest.Database
			if testing.Short() { // measures nothing, so the shared server will do
				db = server.shared(b)
			} else {
				db = sqltest.Start(b, server.engine, sqltest.Setting("max_connections", "1000")).Database(b)
			}
			conn, err := db.Conn(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = conn.Close() })
			locktest.Fleet{
				Locker: func(b *testing.B) locktest.Locker { return newLocker(b, db) },
				Bare:   func(b *testing.B) locktest.Bare { return newBare(b, db.DSN) },
				Far: func(b *testing.B, via func(string) string) (locktest.Locker, locktest.Bare) {
					b.Helper()
					config, err := gomysql.ParseDSN(db.DSN)
					if err != nil {
						b.Fatal(err)
					}
					config.Addr = via(config.Addr)
					dsn := config.FormatDSN()
					return closing(b)(mysql.New(dsn, mysql.WithSessionTTL(time.Hour), mysql.WithLogger(nil))), newBare(b, dsn)
				},
				Counts: observer{conn},
			}.Run(b)
		})
	}
}

type bare struct{ try, wait, unlock *sql.Stmt }

// newBare connects without a database, so that the observer does not count the connection as a Locker's. GET_LOCK is
// the same in all databases.
func newBare(b *testing.B, dsn string) bare {
	b.Helper()
	config, err := gomysql.ParseDSN(dsn)
	if err != nil {
		b.Fatal(err)
	}
	config.DBName = ""
	connector, err := gomysql.NewConnector(config)
	if err != nil {
		b.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	b.Cleanup(func() { _ = pool.Close() })
	conn, err := pool.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() })
	prepare := func(query string) *sql.Stmt {
		s, err := conn.PrepareContext(b.Context(), query)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		return s
	}
	return bare{
		try:    prepare("SELECT GET_LOCK(?, 0)"),
		wait:   prepare("SELECT GET_LOCK(?, 60)"),
		unlock: prepare("SELECT RELEASE_LOCK(?)"),
	}
}

func (c bare) Try(ctx context.Context, name string) error    { return yes(ctx, c.try, name) }
func (c bare) Wait(ctx context.Context, name string) error   { return yes(ctx, c.wait, name) }
func (c bare) Unlock(ctx context.Context, name string) error { return yes(ctx, c.unlock, name) }

var errRefused = errors.New("the server did not say 1")

func yes(ctx context.Context, s *sql.Stmt, name string) error {
	var answer sql.NullInt64
	err := s.QueryRowContext(ctx, name).Scan(&answer)
	if err == nil && answer.Int64 != 1 {
		err = errRefused
	}
	return err
}

// observer is the only connection to a database besides those of Lockers.
type observer struct{ conn *sql.Conn }

func (o observer) Connections(ctx context.Context) (n int, err error) {
	err = o.conn.QueryRowContext(ctx, "SELECT COUNT(*) - 1 FROM "+processes+" WHERE DB = DATABASE()").Scan(&n)
	return n, err
}

func (o observer) Waiting(ctx context.Context) (n int, err error) {
	err = o.conn.QueryRowContext(ctx,
		"SELECT COUNT(*) FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'").Scan(&n)
	return n, err
}

// Statements counts the statements of the whole server, which nobody else uses, except the observer's own.
func (o observer) Statements(ctx context.Context) (int, error) {
	var all, own int
	var name string
	errAll := o.conn.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &all)
	errOwn := o.conn.QueryRowContext(ctx, "SHOW SESSION STATUS LIKE 'Questions'").Scan(&name, &own)
	return all - own, errors.Join(errAll, errOwn)
}
