package mysql_test

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// I3.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, open := range map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Deadlines(t, func(t *testing.T) locktest.Answered {
				db := open(t)
				return locktest.Answered{
					Server: database{db}.config(t).Addr,
					NewLocker: func(t *testing.T, address string, ttl time.Duration) locktest.Locker {
						t.Helper()
						return closing(t)(mysql.New(database{db}.DSN(t, locktest.Access{Address: address}), mysql.WithSessionTTL(ttl)))
					},
					Dialling: func(t *testing.T, dial dialler, ttl time.Duration) locktest.Locker {
						t.Helper()
						return dialling(t, db.DSN, dial, mysql.WithSessionTTL(ttl))
					},
					Ask:  mysql.ServerName(database{db}.config(t).DBName, "late"),
					Ping: "SELECT @@GLOBAL.read_only",
				}
			})
		})
	}
}

type dialler = func(ctx context.Context, network, address string) (net.Conn, error)

// dialling opens a Locker whose connections are opened by dial.
func dialling(t *testing.T, dsn string, dial dialler, opts ...mysql.Option) *mysql.Locker {
	t.Helper()
	config := parse(t, dsn)
	config.DialFunc = dial
	c, err := gomysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() }) // the test is over, so an error does not matter
	return closing(t)(mysql.FromDB(db, opts...))
}
