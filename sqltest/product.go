package sqltest

import (
	"context"
	"database/sql"
)

// A product is what this package knows of one kind of server: how to ask for
// it, start it, talk to it and end it.
type product interface {
	engine() Engine
	title() string    // as people write it
	variable() string // of the environment, saying where the server is
	example() string  // of a DSN for that variable
	image() string    // the pinned default
	port() string     // inside a container

	// parse returns the driver's form of a DSN and the password in it.
	parse(dsn string) (driverDSN, password string, err error)
	// private is the administrator's DSN for a server that this package starts.
	private(address, password string) string
	// in is the same DSN for another database of that server.
	in(dsn, database string) (string, error)
	// driver is the name for database/sql.
	driver() string
	// open prepares connections for this package's own, few statements; they
	// are quiet about servers that do not answer yet.
	open(dsn string) (*sql.DB, error)
	// identify returns name and version, or an error if the server is another
	// product than this.
	identify(ctx context.Context, db *sql.DB) (string, error)
	// sessions describes who is connected to a database, apart from db itself.
	sessions(ctx context.Context, db *sql.DB, database string) ([]string, error)
	// drop removes a database together with the sessions that use it.
	drop(ctx context.Context, db *sql.DB, database string) error

	// options are server options on a command line: what this package wants,
	// then the caller's settings, so that the caller's win.
	options(settings []string) []string
	// environment of a container, with the root password.
	environment(password string) []string
	// command of a container, before the options.
	command() []string
	// dataFolder is where a container keeps its data.
	dataFolder() string

	// find returns the programs of this product in dir, or, if dir is empty,
	// wherever they are installed on this machine.
	find(dir string) (programs, error)
	// user is whom the programs run as if this process is root.
	user() string
	// initialize is the program that fills an empty data folder.
	initialize(p programs, f folder) []string
	// serve is the server's command line.
	serve(p programs, f folder, port string) []string
	// secret is the content of f.secret for the given root password.
	secret(password string) string

	// stopSignal asks for a clean end, without waiting for clients.
	stopSignal() string
	// endSignal ends a server whose data nobody wants any more.
	endSignal() string
}

// programs are the programs of one installed server.
type programs struct {
	dir         string
	server      string
	initializer string // unused if the server does it itself
}

// folder names what the programs of one server may use.
type folder struct {
	data   string // the data folder
	temp   string // for temporary files
	secret string // a file that only the server's user can read
}

func productOf(e Engine) (product, bool) {
	switch e {
	case EnginePostgres:
		return postgres{}, true
	case EngineMySQL:
		return mysqlLike{isMaria: false}, true
	case EngineMariaDB:
		return mysqlLike{isMaria: true}, true
	case EngineSQLite: // has no server
		return nil, false
	}
	return nil, false
}
