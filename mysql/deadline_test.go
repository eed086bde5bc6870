package mysql_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestDeadlines(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(sqltest.TB) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locktest.Deadlines(t, func(t *testing.T) locktest.Answered {
				db := open(t)
				return locktest.Answered{
					Server: parse(t, db.DSN).Addr,
					NewLocker: func(t *testing.T, address string, ttl time.Duration) locktest.Locker {
						t.Helper()
						return closing(t)(mysql.New(at(t, db, address), mysql.WithSessionTTL(ttl)))
					},
					Ask:  mysql.ServerName(parse(t, db.DSN).DBName, "late"),
					Ping: "SELECT @@GLOBAL.read_only",
				}
			})
		})
	}
}
