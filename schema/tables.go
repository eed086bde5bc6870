package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// defaultPrefix begins the names in the SQL files, and replaces an empty Prefix.
const defaultPrefix = "sqllock_"

// maxPrefix leaves room for the longest suffix within the 63 bytes that PostgreSQL keeps of an identifier (MySQL keeps
// 64 characters).
const maxPrefix = 40

// maxSchema is how many bytes PostgreSQL keeps of an identifier.
const maxSchema = 63

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Tables names the lease tables and their schema. The zero value means the names in the SQL files.
type Tables struct {
	// Prefix begins the name of every table: letters, digits and underscores, at most 40. Empty means
	// "sqllock_".
	Prefix string

	// Schema is the PostgreSQL schema of the tables: letters, digits and underscores, at most 63. Empty means the
	// search path. It must be empty for MySQL and SQLite, which use the database of the connection.
	Schema string
}

// Validate returns an error if t or d is invalid. Print, Apply and Check call it first.
func (t Tables) Validate(d Dialect) error {
	if err := d.check(); err != nil {
		return err
	}
	switch {
	case t.Prefix != "" && !plainName.MatchString(t.Prefix):
		return fmt.Errorf("schema: table prefix %q: only letters, digits and underscores are allowed", t.Prefix)
	case len(t.Prefix) > maxPrefix:
		return fmt.Errorf("schema: table prefix %q: %d characters, at most %d are allowed", t.Prefix, len(t.Prefix), maxPrefix)
	case d == SQLite && strings.HasPrefix(strings.ToLower(t.Prefix), "sqlite_"):
		return fmt.Errorf("schema: table prefix %q: SQLite keeps names that begin with sqlite_ to itself", t.Prefix)
	case t.Schema == "":
		return nil
	case d != Postgres:
		return fmt.Errorf("schema: table schema %q: only PostgreSQL has schemas; for %s, connect to the database that has the tables", t.Schema, d)
	case !plainName.MatchString(t.Schema):
		return fmt.Errorf("schema: table schema %q: only letters, digits and underscores are allowed", t.Schema)
	case len(t.Schema) > maxSchema:
		return fmt.Errorf("schema: table schema %q: %d characters, at most %d are allowed", t.Schema, len(t.Schema), maxSchema)
	case strings.HasPrefix(t.Schema, "pg_"):
		return fmt.Errorf("schema: table schema %q: PostgreSQL keeps names that begin with pg_ to itself", t.Schema)
	}
	return nil
}

// isDefault reports whether the names in the SQL files need no change.
func (t Tables) isDefault() bool {
	return t.prefix() == defaultPrefix && t.Schema == ""
}

func (t Tables) prefix() string {
	if t.Prefix == "" {
		return defaultPrefix
	}
	return t.Prefix
}

// display returns the name of a table for messages.
func (t Tables) display(table string) string {
	name := t.prefix() + table
	if t.Schema != "" {
		name = t.Schema + "." + name
	}
	return name
}
