package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// place has the flags of every command that uses a database: which database, and which tables.
type place struct {
	tables schema.Tables
	url    string
	file   string // the file that has the URL
}

func (p *place) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&p.url, "db", "", "`URL` of the database; default $SQLLOCK_DB, then a file of your own")
	flags.StringVar(&p.file, "db-file", "", "`file` that has the URL, in its first line or as SQLLOCK_DB=…")
	completeFiles(cmd, "db-file")
	flags.StringVar(&p.tables.Prefix, "prefix", "", "`prefix` of the names of the tables (default sqllock_)")
	flags.StringVar(&p.tables.Schema, "schema", "", "PostgreSQL `schema` of the tables (default: the search path)")
}

// checkTables refuses --prefix and --schema for a kind of lock that has no tables.
func (p *place) checkTables(kind string) error {
	if kind == kindSession && (p.tables.Prefix != "" || p.tables.Schema != "") {
		return errors.New("--prefix and --schema are for leases: a session lock has no table")
	}
	return nil
}

// openDatabase opens the database that findDatabase finds. It warns if no database was named: a user who meant a server
// would lock nobody out.
func (p *place) openDatabase(cmd *cobra.Command, c *console) (*database, error) {
	db, err := p.findDatabase(cmd, c)
	if err == nil && db.folder != "" {
		text := "no database is named, so locks are in a file of your own, " + db.file + ", which only your processes on this machine share"
		if c.getenv("DATABASE_URL") != "" {
			text += "; DATABASE_URL is set, but not read: set SQLLOCK_DB to it if it is meant"
		}
		c.warn(errors.New(text))
	}
	return db, err
}

// findDatabase opens the database that --db, --db-file or SQLLOCK_DB names, or else the user's own file.
//
// Its errors contain no part of the URL and no message of a parser, which may quote the URL: it may be a password.
func (p *place) findDatabase(cmd *cobra.Command, c *console) (*database, error) {
	named, err := p.named(cmd, c)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if named != "" {
		db, err := openURL(named)
		return db, fail(exitUsage, err)
	}
	file, err := stateFile(c)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	db, err := openSQLite(file)
	if err != nil {
		return nil, err
	}
	db.folder = filepath.Dir(file)
	return db, nil
}

// named returns the database name that the user gave, or "".
func (p *place) named(cmd *cobra.Command, c *console) (string, error) {
	given := cmd.Flags().Changed
	switch {
	case given("db") && given("db-file"):
		return "", errors.New("--db and --db-file both name a database: leave out one of them")
	case given("db-file"):
		named, err := readDatabaseFile(p.file)
		if err == nil && exposed(p.file, named) {
			c.warn(errExposed)
		}
		return named, err
	case given("db") && p.url == "": // --db "$UNSET" must not silently mean a lock that nobody else sees
		return "", errors.New("--db is empty; " + urlForms)
	case given("db"):
		return p.url, nil
	}
	named, set := c.lookupEnv("SQLLOCK_DB")
	if set && named == "" { // a missing CI secret looks like this
		return "", errors.New("SQLLOCK_DB is set, but empty: unset it to lock by a file of this machine only; " + urlForms)
	}
	return named, nil
}

// leases returns a Locker for inspecting the leases of this database. Its errors have an exit code.
func (p *place) leases(ctx context.Context, db *database) (*leasetable.Locker, error) {
	l, err := db.lease(p.tables, lookTTL, operator)
	if err != nil {
		return nil, fail(exitUsage, err)
	}
	if err := db.prepare(ctx, p.tables); err != nil {
		return nil, fail(exitUnavailable, errors.Join(err, l.Close()))
	}
	return l, nil
}

// schemaError says which command creates the tables, with the flags of this call.
func (p *place) schemaError(err error) error {
	command := "sqllock schema apply"
	switch {
	case p.file != "":
		command += " --db-file …"
	case p.url != "":
		command += " --db …"
	}
	if p.tables.Prefix != "" {
		command += " --prefix " + p.tables.Prefix
	}
	if p.tables.Schema != "" {
		command += " --schema " + p.tables.Schema
	}
	if p.file == "" && p.url == "" {
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
