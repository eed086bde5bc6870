package mysql_test

import (
	"fmt"
	"testing"

	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// onEach runs a test on MySQL and on MariaDB.
func onEach(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	for name, open := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

var servers = map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB}

// processes is the table of sessions. MySQL's information_schema.PROCESSLIST fails while the statement of any session
// has a parameter that is not UTF-8.
const processes = "/*!80022 performance_schema.processlist */ /*M! information_schema.PROCESSLIST */"

// sessionsOn counts the connections to db, except db's own.
func sessionsOn(t *testing.T, db *sqltest.Database) (n int) {
	t.Helper()
	db.SetMaxOpenConns(1)
	return ask[int](t, db, "SELECT COUNT(*) - 1 FROM "+processes+" WHERE DB = DATABASE()")
}

// waitersOn counts the sessions that wait in the server's queues, for any lock.
func waitersOn(t *testing.T, db *sqltest.Database) int {
	t.Helper()
	return ask[int](t, db, "SELECT COUNT(*) FROM "+processes+" WHERE DB = DATABASE() AND STATE = 'User lock'")
}

// holderOf returns the connection that holds a lock, or 0.
func holderOf(t *testing.T, db *sqltest.Database, name string) int {
	t.Helper()
	return ask[int](t, db, "SELECT COALESCE(IS_USED_LOCK(?), 0)", serverName(t, db, name))
}

func serverName(t *testing.T, db *sqltest.Database, name string) string {
	t.Helper()
	return mysql.ServerName(ask[string](t, db, "SELECT DATABASE()"), name)
}

// kill ends the connection that holds a lock.
func kill(t *testing.T, db *sqltest.Database, name string) {
	t.Helper()
	statement(t, db, fmt.Sprintf("KILL %d", holderOf(t, db, name)))
}

func ask[T any](t *testing.T, db *sqltest.Database, query string, args ...any) (answer T) {
	t.Helper()
	if err := db.GetContext(t.Context(), &answer, query, args...); err != nil {
		t.Fatal(err)
	}
	return answer
}

func statement(t *testing.T, db *sqltest.Database, query string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatal(err)
	}
}
