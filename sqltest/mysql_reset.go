//go:build !sqltest_no_mysql

package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// To make twenty tables takes MySQL a tenth of a second. So a database that a test has used is made like new instead: if its
// definitions are still those of the template, the tables whose rows have changed are filled again. Everything is compared,
// before and after.

var counter = regexp.MustCompile(` AUTO_INCREMENT=([0-9]+)`)

// resettable reports whether objects have no other state than definitions, rows and auto-increments.
func resettable(objects []object) bool {
	return !slices.ContainsFunc(objects, func(o object) bool {
		// An event may change rows meanwhile, a full-text index remembers deleted rows, and a server caches sequences.
		return o.Kind == "EVENT" || o.Kind == "SEQUENCE" || strings.Contains(o.DDL, "FULLTEXT")
	})
}

func (c mysqlCopier) reset(ctx context.Context, db *sql.DB, b blueprint, name string) (bool, error) {
	if !b.resettable {
		return false, nil
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "USE "+name+"; SET SESSION lock_wait_timeout = 10; "+copying); err != nil {
		return false, err
	}
	defer func() { _, _ = conn.ExecContext(ctx, "USE "+elsewhere) }()

	used, ok := c.compare(ctx, conn, b.objects, b.name, name, true)
	if !ok {
		return false, nil
	}
	if len(used) == 0 {
		return true, nil
	}
	var statements []string
	var wanted []object
	for _, u := range used {
		statements = append(statements, u.refill(b.name))
		wanted = append(wanted, u.want)
	}
	if _, err := conn.ExecContext(ctx, strings.Join(statements, "; ")); err != nil {
		return false, err
	}
	used, ok = c.compare(ctx, conn, wanted, b.name, name, false)
	return ok && len(used) == 0, nil
}

// usedTable is a table whose rows or auto-increment are not the template's.
type usedTable struct{ want, got object }

// refill returns statements that give a table the rows and the auto-increment of the template. DELETE of a few rows takes
// less time than TRUNCATE, but keeps the auto-increment.
func (u usedTable) refill(template string) string {
	table := quoted(u.want.Name)
	statements := "TRUNCATE TABLE " + table
	if u.got.DDL == u.want.DDL && u.got.Rows < 100 {
		statements = "DELETE FROM " + table
	}
	if u.want.Rows > 0 {
		statements += "; " + u.want.insert(template)
	}
	if found := counter.FindStringSubmatch(u.want.DDL); found != nil && u.got.DDL != u.want.DDL {
		statements += "; ALTER TABLE " + table + " AUTO_INCREMENT = " + found[1]
	}
	return statements
}

// compare returns the tables among the objects whose rows or auto-increments are not the same in a database. It reports false if
// anything else is different, or cannot be read, or if a trigger would disturb. Everything is read in one round trip.
func (c mysqlCopier) compare(ctx context.Context, conn *sql.Conn, objects []object, template, database string, all bool) (used []usedTable, ok bool) {
	var query []string
	if all {
		query = append(query, listing(database, choose(c.product.isMaria, mariaCatalog, standardCatalog)), wholeOf(database))
	}
	named := slices.DeleteFunc(slices.Clone(objects), func(o object) bool { return o.Kind == "DATABASE" })
	for _, o := range named {
		query = append(query, "SHOW CREATE "+o.Kind+" "+quoted(o.Name))
		if o.Kind == "TABLE" {
			query = append(query, o.selectData(o.Columns))
		}
	}
	if len(query) == 0 {
		return nil, true
	}
	rows, err := conn.QueryContext(ctx, strings.Join(query, "; "))
	if err != nil {
		return nil, false
	}
	defer func() { _ = rows.Close() }()
	if all {
		if !isList(rows, named) || !rows.NextResultSet() || !isDefinition(rows, objects[0], template, database) || !rows.NextResultSet() {
			return nil, false
		}
	}
	triggers := slices.ContainsFunc(objects, func(o object) bool { return o.Kind == "TRIGGER" })
	for i, want := range named {
		got := object{Kind: want.Kind, Name: want.Name, Columns: want.Columns}
		if err := got.next(rows, template, database, i > 0); err != nil {
			return nil, false
		}
		switch {
		case got == want:
			continue
		case want.Kind != "TABLE" || counter.ReplaceAllString(got.DDL, "") != counter.ReplaceAllString(want.DDL, ""):
			return nil, false
		case triggers:
			return nil, false
		}
		used = append(used, usedTable{want, got})
	}
	return used, rows.Err() == nil
}

// next reads an object from the next answers.
func (o *object) next(rows *sql.Rows, template, database string, advance bool) error {
	missing := errors.New("an answer is missing")
	if advance && !rows.NextResultSet() {
		return errors.Join(missing, rows.Err())
	}
	found, err := scan(rows)
	if err != nil || len(found) != 1 {
		return errors.Join(missing, err)
	}
	o.define(found[0])
	o.DDL = strings.ReplaceAll(o.DDL, database, template)
	if o.Kind != "TABLE" {
		return nil
	}
	if !rows.NextResultSet() {
		return errors.Join(missing, rows.Err())
	}
	return o.hash(rows)
}

// isList reports whether an answer of listing names exactly these objects.
func isList(rows *sql.Rows, objects []object) bool {
	found, err := scan(rows)
	return err == nil && slices.EqualFunc(found, objects, func(row map[string]string, o object) bool {
		return row["kind"] == o.Kind && row["name"] == o.Name
	})
}

// isDefinition reports whether an answer is the definition of an object.
func isDefinition(rows *sql.Rows, want object, template, database string) bool {
	got := object{Kind: want.Kind, Name: want.Name}
	return got.next(rows, template, database, false) == nil && got == want
}
