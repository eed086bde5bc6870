package schema

import (
	"fmt"
	"strings"
)

// Dialect is the dialect of SQL that a database understands.
type Dialect string

// The dialects. MariaDB uses MySQL.
const (
	Postgres Dialect = "postgres"
	MySQL    Dialect = "mysql"
	SQLite   Dialect = "sqlite"
)

// DialectOf returns the dialect for the name of a database/sql driver: pgx, pgx/v5 and postgres, mysql, sqlite and
// sqlite3. Any other name is an error.
func DialectOf(driverName string) (Dialect, error) {
	switch driverName {
	case "pgx", "pgx/v5", "postgres":
		return Postgres, nil
	case "mysql":
		return MySQL, nil
	case "sqlite", "sqlite3":
		return SQLite, nil
	}
	return "", fmt.Errorf("schema: no dialect is known for the database driver %q (known: pgx, pgx/v5, postgres, mysql, sqlite, sqlite3)", driverName)
}

func (d Dialect) check() error {
	switch d {
	case Postgres, MySQL, SQLite:
		return nil
	}
	return fmt.Errorf("schema: unknown dialect %q (known: %s, %s, %s)", string(d), Postgres, MySQL, SQLite)
}

// quote turns any name into a quoted identifier.
func (d Dialect) quote(name string) string {
	mark := `"`
	if d == MySQL {
		mark = "`"
	}
	return mark + strings.ReplaceAll(name, mark, mark+mark) + mark
}
