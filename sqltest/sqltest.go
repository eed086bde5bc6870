package sqltest

import (
	"github.com/jmoiron/sqlx"
)

// TB is what this package needs of a test. *testing.T, *testing.B and
// *testing.F have it.
type TB interface {
	Helper()
	Cleanup(func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Failed() bool
	Name() string
}

// Engine names a kind of database server.
type Engine string

// The engines that this package knows.
const (
	EnginePostgres Engine = "postgres"
	EngineMySQL    Engine = "mysql"
	EngineMariaDB  Engine = "mariadb"
	EngineSQLite   Engine = "sqlite"
)

// Database is an empty database of one test's own. It is closed and dropped
// when the test ends.
type Database struct {
	*sqlx.DB

	// DSN opens the same database again, in the form that the driver wants:
	// a URL for "pgx", a DSN for "mysql", a file: URI for "sqlite". On a server
	// that was named by the environment it contains that server's password.
	DSN string

	// Engine is the kind of server.
	Engine Engine

	// Server says which server this is and where it came from, such as
	// "PostgreSQL 17.6 from docker image postgres:17". It contains no password.
	Server string
}

// Postgres gives tb a new, empty PostgreSQL database, opened with the driver
// "pgx". It ends the test with Fatalf when no server can be had, see the
// package documentation.
func Postgres(tb TB) *Database {
	tb.Helper()
	return onSharedServer(tb, EnginePostgres)
}

// MySQL gives tb a new, empty database on a MySQL server, and never on MariaDB,
// opened with the driver "mysql". It ends the test with Fatalf when no server
// can be had, see the package documentation.
func MySQL(tb TB) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMySQL)
}

// MariaDB gives tb a new, empty database on a MariaDB server, and never on
// MySQL, opened with the driver "mysql". It ends the test with Fatalf when no
// server can be had, see the package documentation.
func MariaDB(tb TB) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMariaDB)
}
