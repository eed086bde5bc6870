package schema

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// catalog has, for each dialect, the statement that describes one table.
//
//go:embed catalog
var catalog embed.FS

const versionSQL = `SELECT COALESCE(MAX(version), 0), COALESCE(MAX(lowest), 0) FROM sqllock_version LIMIT 1`

// displayWidth matches what MariaDB, and MySQL before 8.0.19, add to the type of an integer.
var displayWidth = regexp.MustCompile(`^(bigint|int)\(\d+\)`)

// plainType returns the name of a type independent of the modes of the session and the server: PostgreSQL quotes it with
// quote_all_identifiers, and MariaDB, with MYSQL40 and the like, says that a text is compared by its bytes, and with
// mysql56_temporal_format=OFF that a time is stored in its older form.
func plainType(typ string) string {
	typ = strings.ReplaceAll(strings.ToLower(typ), `"`, "")
	typ = strings.TrimSuffix(strings.TrimSuffix(typ, " binary"), " /* mariadb-5.3 */")
	return displayWidth.ReplaceAllString(typ, "$1")
}

// querier is a connection or a transaction.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// foundColumn is a column as the database has it.
type foundColumn struct {
	typ        string
	nullable   bool
	hasDefault bool
}

// foundTable is a table as the database has it.
type foundTable struct {
	exists  bool
	odd     string                 // why the table cannot be used, whatever its columns; empty if it can
	columns map[string]foundColumn // by name
	primary []string               // columns of the primary key
}

// found is everything that was found in the database.
type found struct {
	place   bool   // the schema, or the database, exists
	hidden  string // the schema of the search path that has tables and that this role may not use; empty if there is none
	tables  map[string]*foundTable
	version int // 0 if unknown
	lowest  int // version that a program has to know for the tables; 0 if unknown
}

// inspect reads the catalogue of the database. It changes nothing.
func inspect(ctx context.Context, q querier, d Dialect, t Tables) (*found, error) {
	query, err := catalog.ReadFile(path.Join("catalog", string(d)+".sql"))
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	f := &found{tables: make(map[string]*foundTable)}
	for _, wanted := range wantedTables {
		table, err := f.describe(ctx, q, string(query), catalogArgs(d, t, wanted.name)...)
		if err != nil {
			return nil, fmt.Errorf("schema: look at table %s: %w", t.display(wanted.name), err)
		}
		f.tables[wanted.name] = table
	}
	_, hasVersion := f.tables["version"].columns["version"]
	_, hasLowest := f.tables["version"].columns["lowest"]
	if hasVersion && hasLowest {
		if err := q.QueryRowContext(ctx, t.Rewrite(d, versionSQL)).Scan(&f.version, &f.lowest); err != nil {
			return nil, fmt.Errorf("schema: read the version in %s: %w", t.display("version"), err)
		}
	}
	return f, nil
}

// catalogArgs returns the arguments of the statement of the dialect for one table.
func catalogArgs(d Dialect, t Tables, table string) []any {
	name := t.prefix() + table
	switch d {
	case Postgres:
		return []any{t.Rewrite(d, defaultPrefix+table), t.Schema}
	case MySQL:
		return []any{name, name, name}
	default:
		return []any{name}
	}
}

// describe runs the statement of the dialect for one table.
func (f *found) describe(ctx context.Context, q querier, query string, args ...any) (*foundTable, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports the error
	table := &foundTable{columns: make(map[string]foundColumn)}
	for rows.Next() {
		var item string
		var maybeName, maybeType sql.NullString // MariaDB with the mode EMPTY_STRING_IS_NULL returns NULL for an empty string
		var column foundColumn
		if err := rows.Scan(&item, &maybeName, &maybeType, &column.nullable, &column.hasDefault); err != nil {
			return nil, err
		}
		name := maybeName.String
		column.typ = maybeType.String
		switch item {
		case "place":
			f.place = true
		case "hidden":
			f.hidden = name
		case "table":
			table.exists, table.odd = true, column.typ
		case "column":
			column.typ = plainType(column.typ)
			table.columns[name] = column
		case "primary":
			table.primary = append(table.primary, name)
		}
	}
	if table.odd == "" && len(table.columns) == 0 { // CREATE on a MySQL database shows its tables, but not their columns
		table.odd = "without columns that this user may see (GRANT SELECT)"
	}
	return table, rows.Err()
}
