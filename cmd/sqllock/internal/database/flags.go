package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// Help says how a database is named.
const Help = `The database is named by --db, by a file (--db-file) or by the environment
variable SQLLOCK_DB:
  postgres://user:password@host:5432/database   PostgreSQL; or keywords:
                                                host=… dbname=…
  mysql://user:password@host:3306/database      MySQL and MariaDB
  user:password@tcp(host:3306)/database         the same, in Go
  sqlite:PATH                                   a file, for the processes
                                                of one machine
In a URL, what is special in a password is percent-encoded. A file with the
certificates that sign for the server is named by
?sslmode=verify-full&sslrootcert=FILE (PostgreSQL) or ?ssl-ca=FILE (MySQL,
MariaDB; without it or tls=true nothing is encrypted there). Everybody on the
machine can see the arguments of a program: put a password into SQLLOCK_DB, or
into the file of --db-file. That has the URL in its first line, or in a line
SQLLOCK_DB=… among others, as .env files have: with or without export, quotes
and a comment behind it; nothing is expanded.

Without any, it is an SQLite file in your state folder
($XDG_STATE_HOME/sqllock/sqllock.db, or ~/.local/state; on macOS
~/Library/Application Support, on Windows %LocalAppData%), which locks out your
own processes on this machine only. That is said on stderr; name the file
(sqlite:PATH) to have nothing said. As the first process of a container sqllock
takes no such file: that is an error, as is a SQLLOCK_DB that is set and empty,
as of a secret that is missing. DATABASE_URL and its like are not read.

The tables of leases are created by themselves on SQLite; on a server by sqllock
schema apply.`

// Flags has the flags of every command that uses a database: which database, and which tables.
type Flags struct {
	Tables schema.Tables
	url    string
	file   string // the file that has the URL
}

// AddFlags adds the flags to a command.
func (f *Flags) AddFlags(cmd *cobra.Command) {
	set := cmd.Flags()
	set.StringVar(&f.url, "db", "", "`URL` of the database; default $SQLLOCK_DB, then a file of your own")
	set.StringVar(&f.file, "db-file", "", "`file` that has the URL, in its first line or as SQLLOCK_DB=…")
	flags.CompleteFiles(cmd, "db-file")
	set.StringVar(&f.Tables.Prefix, "prefix", "", "`prefix` of the names of the tables (default sqllock_)")
	set.StringVar(&f.Tables.Schema, "schema", "", "PostgreSQL `schema` of the tables (default: the search path)")
}

// CheckTables refuses --prefix and --schema for a kind of lock that has no tables.
func (f *Flags) CheckTables(kind string) error {
	if kind == KindSession && (f.Tables.Prefix != "" || f.Tables.Schema != "") {
		return errors.New("--prefix and --schema are for leases: a session lock has no table")
	}
	return nil
}

// ValidateTables checks --prefix and --schema.
func (f *Flags) ValidateTables(d schema.Dialect) error {
	for flag, tables := range map[string]schema.Tables{"--prefix": {Prefix: f.Tables.Prefix}, "--schema": {Schema: f.Tables.Schema}} {
		if err := tables.Validate(d); err != nil {
			return fmt.Errorf("%s: %s", flag, strings.TrimPrefix(err.Error(), "schema: "))
		}
	}
	return nil
}

// OpenDatabase opens the database that FindDatabase finds. It warns if no database was named: a user who meant a server
// would lock nobody out. In a container that is an error, since its file is not even there for others on this machine.
func (f *Flags) OpenDatabase(cmd *cobra.Command, c *console.Console) (*Database, error) {
	db, err := f.FindDatabase(cmd, c)
	if err == nil && db.folder != "" && os.Getpid() == 1 {
		db.Close()
		return nil, exit.With(exit.Usage, errors.New("no database is named by --db, --db-file or SQLLOCK_DB, and a file of this container "+
			"locks nobody else out: name a server, or sqlite:PATH in a volume that all of them have"))
	}
	if err == nil && db.folder != "" {
		text := "no database is named, so locks are in a file of your own, " + db.file + ", which only your processes on this machine share"
		if c.Getenv("DATABASE_URL") != "" {
			text += "; DATABASE_URL is set, but not read: set SQLLOCK_DB to it if it is meant"
		}
		c.Warn(errors.New(text))
	}
	return db, err
}

// FindDatabase opens the database that --db, --db-file or SQLLOCK_DB names, or else the user's own file.
//
// Its errors contain no part of the URL and no message of a parser, which may quote the URL: it may be a password.
func (f *Flags) FindDatabase(cmd *cobra.Command, c *console.Console) (*Database, error) {
	named, err := f.named(cmd, c)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if named != "" {
		db, err := openURL(named)
		if err != nil {
			return nil, exit.With(exit.Usage, fmt.Errorf("%s: %w", f.source(cmd), err))
		}
		if isFile(f.file) {
			db.password = func(former string) string { return f.password(db, former) }
		}
		return db, nil
	}
	file, err := stateFile(c)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	db, err := openSQLite(file)
	if err != nil {
		return nil, err
	}
	db.folder = filepath.Dir(file)
	return db, nil
}

// source says what has named the database.
func (f *Flags) source(cmd *cobra.Command) string {
	switch given := cmd.Flags().Changed; {
	case given("db"):
		return "--db"
	case given("db-file"):
		return "the file of --db-file"
	}
	return "SQLLOCK_DB"
}

// named returns the database name that the user gave, or "".
func (f *Flags) named(cmd *cobra.Command, c *console.Console) (string, error) {
	given := cmd.Flags().Changed
	switch {
	case given("db") && given("db-file"):
		return "", errors.New("--db and --db-file both name a database: leave out one of them")
	case given("db-file"):
		named, err := readDatabaseFile(f.file)
		if err == nil && exposed(f.file, named) {
			c.Warn(errExposed)
		}
		return named, err
	case given("db") && f.url == "": // --db "$UNSET" must not silently mean a lock that nobody else sees
		return "", errors.New("--db is empty; " + urlForms)
	case given("db"):
		return f.url, nil
	}
	named, set := c.LookupEnv("SQLLOCK_DB")
	named = strings.TrimRight(named, "\r\n") // as in a secret that was made with echo
	if set && named == "" {                  // a missing CI secret looks like this
		return "", errors.New("SQLLOCK_DB is set, but empty: unset it to lock by a file of this machine only; " + urlForms)
	}
	return named, nil
}

// Leases returns a Locker for inspecting the leases of this database. Its errors have an exit code.
func (f *Flags) Leases(ctx context.Context, db *Database) (*leasetable.Locker, error) {
	if err := f.ValidateTables(db.Dialect); err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	l, err := db.Lease(f.Tables, LookTTL, Operator)
	if err != nil {
		return nil, exit.With(exit.Usage, err)
	}
	if err := db.Prepare(ctx, f.Tables); err != nil {
		return nil, exit.With(exit.Unavailable, errors.Join(err, l.Close())) //nolint:contextcheck // locks have contexts of their own
	}
	return l, nil
}

// SchemaError says which command creates the tables, with the flags of this call. An error with other advice, since the tables
// take a later program or have a column that no statement knows, is returned as it is.
func (f *Flags) SchemaError(err error) error {
	if code := connector.CodeOf(err); code == "" || slices.Contains([]string{"23502", "mysql 1364"}, code) {
		return err
	}
	command := "sqllock schema apply"
	switch {
	case f.file != "":
		command += " --db-file …"
	case f.url != "":
		command += " --db …"
	}
	if f.Tables.Prefix != "" {
		command += " --prefix " + f.Tables.Prefix
	}
	if f.Tables.Schema != "" {
		command += " --schema " + f.Tables.Schema
	}
	if f.file == "" && f.url == "" {
		command += " (the database is that of SQLLOCK_DB)"
	}
	return fmt.Errorf("the tables are missing in this database, or are of another version; create them with: %s (%w)", command, lastOf(err))
}

// lastOf returns the last of the errors that err joins: the answer of the database, without the advice before it.
func lastOf(err error) error {
	var several interface{ Unwrap() []error }
	for errors.As(err, &several) {
		all := several.Unwrap()
		err = all[len(all)-1]
	}
	return err
}
