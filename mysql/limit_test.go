package mysql_test

import (
	"fmt"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestALockerKeepsToItsLimits(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		locktest.Limits(t, func(t *testing.T, n int) locktest.Locker {
			t.Helper()
			return newLocker(t, db, mysql.WithMaxConnections(n))
		}, func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) }, 1000)
		for _, n := range []int{-1, 0, 1, 1001} {
			if _, err := mysql.New(db.DSN, mysql.WithMaxConnections(n)); err == nil {
				t.Errorf("WithMaxConnections(%d): no error", n)
			}
		}
	})
}

func TestAServerWithoutAFreeConnectionIsErrLimit(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			const connections = 12 // and one for an administrator
			db := sqltest.Start(t, engine, fmt.Sprint("max_connections=", connections)).Database(t)
			locktest.Connections(t, func(t *testing.T) locktest.Locker { t.Helper(); return newLocker(t, db) }, connections+1)
		})
	}
}

func TestAUserWithoutAFreeConnectionIsErrLimit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		config, err := gomysql.ParseDSN(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		user := "one_" + config.DBName[max(0, len(config.DBName)-20):]
		statement(t, db, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'One1-one' WITH MAX_USER_CONNECTIONS 1")
		t.Cleanup(func() { _, _ = db.Exec("DROP USER '" + user + "'@'%'") })
		statement(t, db, "GRANT ALL ON `"+config.DBName+"`.* TO '"+user+"'@'%'")
		config.User, config.Passwd = user, "One1-one"
		first, second := closing(t)(mysql.New(config.FormatDSN())), closing(t)(mysql.New(config.FormatDSN()))
		locktest.MustWaitWithOneConnection(t, newLocker(t, db), first)
		locktest.MustBeFull(t, second)
	})
}
