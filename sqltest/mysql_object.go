//go:build !sqltest_no_mysql

package sqltest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// copying prepares a session to read and make objects: it changes no value, and checks none.
const copying = "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', time_zone = '+00:00', sql_quote_show_create = 1, " +
	"foreign_key_checks = 0, unique_checks = 0, character_set_client = utf8mb4, character_set_results = utf8mb4"

// catalog says where a listing reads the routines and events of a database.
type catalog struct{ routines, events string }

var (
	standardCatalog = catalog{
		"routine_type, routine_name FROM information_schema.routines WHERE routine_schema",
		"event_name FROM information_schema.events WHERE event_schema",
	}
	// mariaCatalog has the tables behind it on MariaDB, whose information_schema reads those of all databases. Not every user
	// may read them.
	mariaCatalog = catalog{
		"type, name FROM mysql.proc WHERE db",
		"name FROM mysql.event WHERE db",
	}
)

// listing returns a query that names the objects of a database, in the order in which they can be made. (Views are tried
// again.)
func listing(database string, c catalog) string {
	return strings.ReplaceAll(`
		SELECT kind, name FROM (
			SELECT CASE table_type WHEN 'SEQUENCE' THEN 1 WHEN 'VIEW' THEN 4 ELSE 2 END AS turn, 0 AS place,
				CASE table_type WHEN 'BASE TABLE' THEN 'TABLE' ELSE table_type END AS kind, table_name AS name
			FROM information_schema.tables WHERE table_schema = '?' AND table_name <> '`+markTable+`'
			UNION ALL SELECT 3, 0, `+c.routines+` = '?'
			UNION ALL SELECT 5, action_order, 'TRIGGER', trigger_name FROM information_schema.triggers WHERE trigger_schema = '?'
			UNION ALL SELECT 6, 0, 'EVENT', `+c.events+` = '?'
		) everything ORDER BY turn, place, name`, "?", database)
}

// wholeOf returns a query for the properties of a database itself.
func wholeOf(database string) string {
	return "SELECT CONCAT('ALTER DATABASE CHARACTER SET ', default_character_set_name, ' COLLATE ', default_collation_name) AS `Create Database` " +
		"FROM information_schema.schemata WHERE schema_name = '" + database + "'"
}

// read returns everything in a database, without its name.
func (c mysqlCopier) read(ctx context.Context, conn *sql.Conn, database string) (found []object, err error) {
	if _, err := conn.ExecContext(ctx, "USE "+database); err != nil {
		return nil, err
	}
	defer func() {
		_, errUse := conn.ExecContext(ctx, "USE "+elsewhere)
		err = errors.Join(err, errUse)
	}()
	if _, err := conn.ExecContext(ctx, copying); err != nil {
		return nil, err
	}
	whole, err := rowsOf(ctx, conn, wholeOf(database))
	if err != nil {
		return nil, err
	}
	names, err := rowsOf(ctx, conn, listing(database, standardCatalog))
	if err != nil {
		return nil, err
	}
	found = append(found, object{Kind: "DATABASE", DDL: whole[0]["Create Database"]})
	for _, row := range names {
		o := object{Kind: row["kind"], Name: row["name"]}
		if err := o.read(ctx, conn, database); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
		}
		o.DDL = strings.ReplaceAll(o.DDL, database, strings.TrimSuffix(database, trialSuffix))
		found = append(found, o)
	}
	return found, nil
}

// read fills an object whose kind and name are known.
func (o *object) read(ctx context.Context, conn *sql.Conn, database string) error {
	rows, err := rowsOf(ctx, conn, "SHOW CREATE "+o.Kind+" "+quoted(o.Name))
	if err != nil {
		return err
	}
	o.define(rows[0])
	switch {
	case o.DDL == "":
		return errors.New("its definition cannot be read")
	case o.Kind == "SEQUENCE":
		return o.readData(ctx, conn, "*")
	case o.Kind != "TABLE":
		return nil
	}
	columns, err := rowsOf(ctx, conn, `
		SELECT column_name AS name FROM information_schema.columns
		WHERE table_schema = ? AND table_name = ? AND COALESCE(generation_expression, '') = ''
		ORDER BY ordinal_position`, database, o.Name)
	if err != nil {
		return err
	}
	var names []string
	for _, column := range columns {
		names = append(names, quoted(column["name"]))
	}
	o.Columns = strings.Join(names, ", ")
	return o.readData(ctx, conn, o.Columns)
}

// define takes an object's definition from the answer of SHOW CREATE.
func (o *object) define(row map[string]string) {
	for column, value := range row {
		switch {
		case strings.HasPrefix(column, "Create ") || column == "SQL Original Statement":
			o.DDL = strings.TrimRight(value, ";") // which MySQL keeps of a text of several statements
		case column == "sql_mode":
			o.Mode = value
		case column == "character_set_client":
			o.Client = value
		case column == "collation_connection":
			o.Collation = value
		case column == "time_zone":
			o.Zone = value
		}
	}
}

func (o *object) readData(ctx context.Context, conn *sql.Conn, columns string) error {
	rows, err := conn.QueryContext(ctx, o.selectData(columns))
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	return o.hash(rows)
}

func (o *object) selectData(columns string) string {
	return "SELECT " + columns + " FROM " + quoted(o.Name)
}

// hash takes an object's data from its rows.
func (o *object) hash(rows *sql.Rows) error {
	names, err := rows.Columns()
	if err != nil {
		return err
	}
	values, pointers := make([]sql.RawBytes, len(names)), make([]any, len(names))
	for i := range values {
		pointers[i] = &values[i]
	}
	all := sha256.New()
	for o.Rows = 0; rows.Next(); o.Rows++ {
		if err := rows.Scan(pointers...); err != nil {
			return err
		}
		for _, value := range values {
			fmt.Fprintf(all, "%t %d ", value == nil, len(value))
			_, _ = all.Write(value)
		}
	}
	o.Data = hex.EncodeToString(all.Sum(nil))
	return rows.Err()
}

// copy makes the object of one database in another one, which is the current one of conn.
func (o object) copy(ctx context.Context, conn *sql.Conn, from, to string) error {
	var statements []string
	if o.Kind != "TABLE" {
		statements = append(statements, o.session())
	}
	statements = append(statements, strings.ReplaceAll(o.DDL, from, to))
	if o.Kind != "TABLE" {
		statements = append(statements, copying)
	}
	if o.Kind == "TABLE" && o.Rows > 0 {
		statements = append(statements, o.insert(from))
	}
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s %s: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}

// insert returns a statement that copies the rows of a table from another database.
func (o object) insert(from string) string {
	return "INSERT INTO " + quoted(o.Name) + " (" + o.Columns + ") SELECT " + o.Columns + " FROM " + from + "." + quoted(o.Name)
}

// session returns a statement that gives a session the settings with which the object was made.
func (o object) session() string {
	literal := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	statement := "SET SESSION sql_mode = " + literal(o.Mode)
	if o.Client != "" {
		statement += ", character_set_client = " + o.Client + ", collation_connection = " + o.Collation
	}
	if o.Zone != "" {
		statement += ", time_zone = " + literal(o.Zone)
	}
	return statement
}

// rowsOf returns the rows of a query, by the names of the columns.
func rowsOf(ctx context.Context, db querier, query string, args ...any) (found []map[string]string, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	return scan(rows)
}

// scan returns the rows of the current answer, by the names of the columns.
func scan(rows *sql.Rows) (found []map[string]string, err error) {
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, pointers := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(pointers...); err != nil {
			return nil, err
		}
		row := make(map[string]string, len(columns))
		for i, column := range columns {
			row[column] = values[i].String
		}
		found = append(found, row)
	}
	return found, rows.Err()
}
