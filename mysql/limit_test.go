package mysql_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAUserWithoutAFreeConnectionIsErrLimit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		dsn := limitedUser(t, db, "MAX_USER_CONNECTIONS 1")
		first, second := closing(t)(mysql.New(dsn)), closing(t)(mysql.New(dsn))
		locktest.MustWaitWithOneConnection(t, newLocker(t, db), first)
		locktest.MustBeFull(t, second)
	})
}

func TestMoreLockersThanConnectionsAreServed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		dsn := limitedUser(t, db, "MAX_USER_CONNECTIONS 4")
		locktest.OneNameInCrowd(t, func(t *testing.T) locktest.Locker {
			t.Helper()
			return closing(t)(mysql.New(dsn))
		}, 6)
	})
}

// limitedUser creates a database user with limited resources, and returns the DSN.
func limitedUser(t *testing.T, db *sqltest.Database, limit string) string {
	t.Helper()
	database := database{db}
	name := database.Access(t).Database
	user := "few_" + name[max(0, len(name)-20):]
	statement(t, db, "CREATE USER '"+user+"'@'%' IDENTIFIED BY 'One1-one' WITH "+limit)
	t.Cleanup(func() { _, _ = db.Exec("DROP USER '" + user + "'@'%'") })
	statement(t, db, "GRANT ALL ON `"+name+"`.* TO '"+user+"'@'%'")
	return database.DSN(t, locktest.Access{User: user, Password: "One1-one"})
}
