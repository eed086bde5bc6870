package sqltest

import (
	"github.com/jmoiron/sqlx"
)

// TB is the part of a test that this package needs. *testing.T, *testing.B and *testing.F implement it.
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

// The supported engines.
const (
	EnginePostgres Engine = "postgres"
	EngineMySQL    Engine = "mysql"
	EngineMariaDB  Engine = "mariadb"
	EngineSQLite   Engine = "sqlite"
)

// Database is the database of one test. It is closed when the test ends, and nobody sees it again.
type Database struct {
	*sqlx.DB

	// DSN opens the same database again, in the form that the driver needs: a URL for "pgx", a DSN for "mysql", a file:
	// URI for "sqlite". For a server named by the environment it contains that server's password.
	DSN string

	// Engine is the kind of server.
	Engine Engine

	// Server has the version and the source of the server, such as "PostgreSQL 17.6 from docker image postgres:17". It
	// contains no password.
	Server string

	log    func() (string, error) // nil if the log is not known
	sweeps bool                   // what a killed process leaves on the server, the next one drops
}

// Postgres gives tb a new, empty PostgreSQL database, opened with the driver "pgx". It ends the test with Fatalf if
// there is no server; see the package documentation.
func Postgres(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EnginePostgres, nil, opts)
}

// MySQL gives tb a new, empty database on a MySQL server, never on MariaDB, opened with the driver "mysql". It ends the
// test with Fatalf if there is no server; see the package documentation.
func MySQL(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMySQL, nil, opts)
}

// MariaDB gives tb a new, empty database on a MariaDB server, never on MySQL, opened with the driver "mysql". It ends
// the test with Fatalf if there is no server; see the package documentation.
func MariaDB(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMariaDB, nil, opts)
}

// SQLite gives tb a new, empty SQLite database in a file of its own, opened with the driver "sqlite"
// (modernc.org/sqlite), in WAL mode and with a busy timeout of 5 seconds. The file is removed when the test ends, or
// kept if the test failed and SQLTEST_KEEP is set. The option is [Setting], for a pragma.
func SQLite(tb TB, opts ...Option) *Database {
	tb.Helper()
	return sqliteFile(tb, nil, opts)
}
