package schema_test

import (
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// as opens a MySQL or MariaDB database as a new user with some privileges on a table, or on the whole database if the
// table is "*".
func as(t *testing.T, db *sqltest.Database, user, privileges, table string) *sql.DB {
	t.Helper()
	config, err := mysql.ParseDSN(db.DSN)
	must(t, err)
	user += config.DBName[max(0, len(config.DBName)-24):]
	exec(t, db.DB.DB, "CREATE USER "+user+" IDENTIFIED BY 'One1-one'")
	t.Cleanup(func() { _, _ = db.Exec("DROP USER " + user) })
	exec(t, db.DB.DB, "GRANT "+privileges+" ON `"+config.DBName+"`."+table+" TO "+user)
	config.User, config.Passwd = user, "One1-one"
	other, err := sql.Open(db.DriverName(), config.FormatDSN())
	must(t, err)
	t.Cleanup(func() { _ = other.Close() })
	return other
}

// docs/operations.md says which privileges are needed.
func TestPrivilegesOnMySQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		if d != schema.MySQL {
			return
		}
		apply(t.Context(), t, as(t, db, "a", "CREATE, SELECT, INSERT", "*"), d, schema.Tables{})

		stranger := as(t, db, "b", "SELECT", "sqllock_version")
		wants(t, schema.Check(t.Context(), stranger, d, schema.Tables{}), "table sqllock_lock is missing, or this user has no privilege on it")

		maker := as(t, db, "c", "CREATE", "*")
		wants(t, schema.Check(t.Context(), maker, d, schema.Tables{}), "table sqllock_lock is without columns that this user may see")
	})
}
