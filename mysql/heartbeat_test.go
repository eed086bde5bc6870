package mysql_test

import (
	"log/slog"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// The server tells a user who has asked too much to wait for the next hour.
func TestAnErrorOfOneHeartbeatCostsNoLock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		config, err := gomysql.ParseDSN(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		user := "few_" + config.DBName[max(0, len(config.DBName)-20):]
		statement(t, db, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'One1-one' WITH MAX_QUERIES_PER_HOUR 300")
		t.Cleanup(func() { _, _ = db.Exec("DROP USER '" + user + "'@'%'") })
		statement(t, db, "GRANT ALL ON `"+config.DBName+"`.* TO '"+user+"'@'%'")
		config.User, config.Passwd = user, "One1-one"
		wasteful, err := sqlx.Open("mysql", config.FormatDSN())
		if err != nil {
			t.Fatal(err)
		}
		defer wasteful.Close()
		locktest.Heartbeat(t, func(t *testing.T, hook func(sqllock.Event), logger *slog.Logger) locktest.Locker {
			t.Helper()
			return closing(t)(mysql.New(config.FormatDSN(), mysql.WithHook(hook), mysql.WithLogger(logger), mysql.WithSessionTTL(6*time.Second)))
		}, func(t *testing.T) {
			t.Helper()
			for err = nil; err == nil; {
				_, err = wasteful.ExecContext(t.Context(), "DO 1")
			}
		}, func(t *testing.T) {
			t.Helper()
			statement(t, db, "FLUSH USER_RESOURCES")
		})
	})
}
