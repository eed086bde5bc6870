package sqltest

import (
	"context"
	"database/sql"
	"time"
)

// product describes one kind of server: how to find, start, use and end it.
type product interface {
	engine() Engine
	title() string    // the name for people
	variable() string // the environment variable that says where the server is
	example() string  // a DSN for that variable
	image() string    // the pinned default
	port() string     // inside a container

	dsns
	statements
	// identify returns name and version, or an error if the server is another product.
	identify(ctx context.Context, db *sql.DB) (string, error)
	// copier makes and copies templates.
	copier() copier

	// options returns server options for a command line: those of sqltest, then the caller's settings, which override
	// them.
	options(settings []string) []string
	// environment returns the environment of a container, with the root password.
	environment(password string) []string
	// command returns the command of a container, without the options.
	command() []string
	// dataFolder returns the folder where a container stores its data.
	dataFolder() string

	// find returns the programs of this product in dir, or if dir is empty those installed on this machine. It prefers those
	// of a version, where it sees which they are.
	find(dir, version string) (programs, error)
	// user returns the user that the programs run as if this process is root.
	user() string
	// initialize returns the command that fills an empty data folder.
	initialize(p programs, f folder) []string
	// serve returns the server's command line.
	serve(p programs, f folder, port string) []string
	// secret returns the content of f.secret for this root password.
	secret(password string) string
	// tls returns the settings for TLS with the files of a folder.
	tls(dir string) []string

	// stopSignal returns the signal for a clean shutdown that does not wait for clients.
	stopSignal() string
	// endSignal returns the signal that ends a server whose data is no longer needed.
	endSignal() string
}

// dsns is the driver of a product, and the form of its DSNs.
type dsns interface {
	// driver returns the driver's name in database/sql.
	driver() string
	// open opens a pool for sqltest's own statements, which are few. It logs nothing about servers that do not answer
	// yet.
	open(dsn string) (*sql.DB, error)

	// parse returns the driver's form of a DSN and the password in it.
	parse(dsn string) (driverDSN, password string, err error)
	// private returns the administrator's DSN of a server that sqltest starts.
	private(address, password string) string
	// in returns the same DSN for another database of that server.
	in(dsn, database string) (string, error)
	// endpoint returns what the driver dials for a DSN, and at returns the same DSN for a host and port.
	endpoint(dsn string) (network, address string, err error)
	at(dsn, address string) (string, error)
	// as returns the same DSN for another user, and userOf the user in a DSN.
	as(dsn, user, password string) (string, error)
	userOf(dsn string) string
	// with returns a DSN with a setting of sessions, where it is part of the DSN.
	with(dsn string, s setting) (string, error)
	// secure returns a DSN that uses TLS, and insecure ends that.
	secure(dsn string, inst *instance, certs *certificates) (string, error)
	insecure(inst *instance)
	// pooled returns the entry of a PgBouncer's configuration for a DSN, and the DSN through it, without prepared statements
	// if plain.
	pooled(dsn, address string, plain bool) (entry, through string, err error)
}

// statements are run on a server of a product.
type statements interface {
	// set and extend give settings of sessions, where they are not part of the DSN, and extensions to the database of db.
	set(ctx context.Context, db *sql.DB, name string, s setting) error
	extend(ctx context.Context, db *sql.DB, extension string) error
	// makeUser makes a user with grants in the database of db, and dropUser drops it. Users lists those of this package.
	makeUser(ctx context.Context, db *sql.DB, name, password string, grants []string) error
	dropUser(ctx context.Context, db *sql.DB, name string) error
	users(ctx context.Context, db querier) ([]string, error)
	// ease makes logins with the password of private cost less, where a server that was just made can do that.
	ease(ctx context.Context, db *sql.DB, password string) error
	// now returns the time of the server's wall clock.
	now(ctx context.Context, db *sql.DB) (time.Time, error)
	// sessions describes the sessions of a database, except that of db itself.
	sessions(ctx context.Context, db *sql.DB, database string) ([]string, error)
	// drop drops a database together with the sessions that use it.
	drop(ctx context.Context, db *sql.DB, database string) error
}

// postgresUser is the user that the programs of PostgreSQL run as if this process is root.
const postgresUser = "postgres"

// programs are the programs of one installed server.
type programs struct {
	dir         string
	server      string
	initializer string // unused if the server initializes itself
}

// folder has the paths that the programs of one server may use.
type folder struct {
	data   string // the data folder
	temp   string // for temporary files
	secret string // a file that only the server's user can read
}

// productOf returns the product of an engine, unless it is SQLite or left out of this binary.
func productOf(e Engine) (p product, ok bool) {
	switch e {
	case EnginePostgres:
		p = newPostgres()
	case EngineMySQL, EngineMariaDB:
		p = newMySQL(e == EngineMariaDB)
	case EngineSQLite: // it has no server
	}
	return p, p != nil
}

// withoutError means that an engine was left out of this binary by a build tag.
type withoutError Engine

func (e withoutError) Error() string {
	tag := "sqltest_no_" + string(e)
	if Engine(e) == EngineMariaDB {
		tag = "sqltest_no_mysql"
	}
	return "this test binary has no " + string(e) + ": build it without the tag " + tag
}

func choose[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}
