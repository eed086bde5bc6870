package leasetable

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/dburl"
	"github.com/sqllock/sqllock/schema"
)

// New returns a Locker on the lease tables of the database of a DSN: a URL that begins with postgres:// or
// keyword=value pairs for PostgreSQL, user:password@tcp(host:3306)/database for MySQL and MariaDB, or a URL that
// begins with file: for SQLite. The program has to import the driver: github.com/jackc/pgx/v5/stdlib or
// github.com/lib/pq, github.com/go-sql-driver/mysql, modernc.org/sqlite or github.com/mattn/go-sqlite3. With lib/pq,
// waiters in other processes poll, and behind a transaction pooler its DSN needs binary_parameters=yes.
//
// Like FromDB and FromConnector it does not connect: the Locker does when it first needs a connection. The error says that
// dsn has none of these forms, or cannot be parsed, without repeating it, that no driver for it is imported, or which
// option is out of range. A driver may parse dsn only when it connects.
func New(dsn string, opts ...Option) (*Locker, error) {
	name, err := driverFor(dsn)
	switch {
	case err != nil:
		return nil, err
	case dburl.IsMisread(dsn):
		return nil, fmt.Errorf("leasetable: %w", connector.ErrUnparsable)
	}
	db, err := sql.Open(name, dsn)
	if err != nil { // its text may repeat the DSN
		return nil, fmt.Errorf("leasetable: the driver %q cannot parse the DSN; %s", name, forms)
	}
	defer db.Close() // it has no connection: the Locker opens its own
	return FromDB(db, opts...)
}

// FromDB returns a Locker on the lease tables of db's database. The Locker connects as db does. It takes no connection
// from db's pool, and does not close db. For a *sqlx.DB pass its field DB. The MySQL driver writes lines of its own to
// stderr when a connection breaks, unless the configuration of db has another Logger. A readTimeout of that driver must be
// longer than three seconds. The driver must be one of those that [New] knows; for any other driver, such as one that
// wraps one of them, [WithDialect] names the database. A driver whose connections cannot begin, prepare, execute and query
// with a context, such as github.com/ncruces/go-sqlite3, is an error of the first acquisition (sqllock.ErrUnsupported). A nil
// db, an unknown driver without WithDialect, a db that connects by a *pgxpool.Pool and an option out of range are errors.
func FromDB(db *sql.DB, opts ...Option) (*Locker, error) {
	c, err := connector.Of(db)
	if err != nil {
		return nil, err
	}
	return newLocker(c, opts)
}

// FromConnector returns a Locker on the lease tables of the database that c connects to. pg.Connector makes a connector
// of a *pgxpool.Pool. It returns the errors of FromDB.
func FromConnector(c driver.Connector, opts ...Option) (*Locker, error) {
	if err := connector.Check(c); err != nil {
		return nil, err
	}
	return newLocker(c, opts)
}

// forms describes the DSNs that New knows.
const forms = "it must be postgres://user:password@host:5432/database or keyword=value pairs for PostgreSQL, " +
	"user:password@tcp(host:3306)/database, without mysql://, for MySQL and MariaDB, or file:locks.db for SQLite"

var (
	// keyword matches the beginning of a list of keyword=value pairs.
	keyword = regexp.MustCompile(`^\s*\w+\s*=`)
	// mysqlDSN matches the DSN of MySQL's driver, [user[:password]@][network[(address)]]/database[?parameters]. Only tcp
	// and unix have a default address, so the path of a file is no such DSN.
	mysqlDSN = regexp.MustCompile(`(?s)^(.*@)?((tcp|unix)?|[^@()/]+\(.*\))/[^/]*$`)
	// mysqlURL matches a URL, of which the driver would take the scheme for the user.
	mysqlURL = regexp.MustCompile(`^(mysql|mariadb)://`)
)

// driverFor returns a registered driver for the form of a DSN.
func driverFor(dsn string) (string, error) {
	known, packages := []string{"mysql"}, "github.com/go-sql-driver/mysql"
	switch {
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"), keyword.MatchString(dsn):
		known, packages = []string{"pgx", "pgx/v5", "postgres"}, "github.com/jackc/pgx/v5/stdlib"
	case strings.HasPrefix(dsn, "file:"):
		known, packages = []string{"sqlite", "sqlite3"}, "modernc.org/sqlite"
	case mysqlURL.MatchString(dsn) || !mysqlDSN.MatchString(dsn):
		return "", errors.New("leasetable: the DSN has no known form; " + forms)
	}
	if i := slices.IndexFunc(known, func(name string) bool { return slices.Contains(sql.Drivers(), name) }); i >= 0 {
		return known[i], nil
	}
	return "", fmt.Errorf("leasetable: no driver for this DSN is registered: import _ %q", packages)
}

// dialectOf derives the dialect from the type of a driver. The driver is not imported here: the user brings it.
func dialectOf(d driver.Driver) (schema.Dialect, error) {
	switch fmt.Sprintf("%T", d) {
	case "*stdlib.Driver", "*pq.Driver", "pq.Driver":
		return schema.Postgres, nil
	case "*mysql.MySQLDriver", "mysql.MySQLDriver":
		return schema.MySQL, nil
	case "*sqlite.Driver", "*sqlite3.SQLiteDriver":
		return schema.SQLite, nil
	}
	return "", fmt.Errorf("leasetable: the driver %T is not known: say by leasetable.WithDialect which database it is for; if it wraps pgx, "+
		"use a Locker of the connector beneath it (FromConnector), so that statements are not prepared behind a pooler", d)
}
