package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sqllock/sqllock"
)

// difference is the difference between the tables found and the tables wanted.
type difference struct {
	tables   Tables
	newest   int      // version of the tables wanted
	newer    int      // version of tables that are too new; 0 if they are not
	lowest   int      // version that a program has to know for those
	noPlace  string   // why no table can be created; empty if one can
	missing  []string // differences that applying the files fixes
	whole    bool     // no table is missing
	mistakes []string // differences that applying the files does not fix
	later    bool     // the files of a later release may fix the mistakes
}

// compare compares the tables found with the tables wanted, which have the version newest.
func compare(f *found, d Dialect, t Tables, newest int) *difference {
	diff := &difference{tables: t, newest: newest}
	if f.version > newest {
		// This release does not know what a later one wants of its tables. The tables say whether an older program may
		// use them.
		if f.lowest > newest {
			diff.newer, diff.lowest = f.version, f.lowest
			return diff
		}
		for _, wanted := range wantedTables {
			diff.lacks(d, wanted, f.tables[wanted.name])
		}
		diff.later = len(diff.mistakes) > 0
		return diff
	}
	if !f.place || f.hidden != "" && !f.tables["lock"].exists {
		diff.noPlace = noPlace(f, d, t)
	}
	for _, wanted := range wantedTables {
		diff.table(d, wanted, f.tables[wanted.name])
	}
	diff.whole = len(diff.missing) == 0
	if f.tables["version"].exists && f.version < newest {
		diff.missing = append(diff.missing,
			fmt.Sprintf("the tables are version %d, this program needs version %d", f.version, newest))
	}
	return diff
}

func noPlace(f *found, d Dialect, t Tables) string {
	switch {
	case f.hidden != "": // others would not see the tables made elsewhere, so a name would have two holders
		return fmt.Sprintf("the tables are in schema %s, which this role may not use: GRANT USAGE ON SCHEMA %s to it, or name another schema for tables of its own",
			f.hidden, f.hidden)
	case d == MySQL:
		return "no database is selected: name one in the DSN"
	case t.Schema != "":
		return fmt.Sprintf("PostgreSQL schema %q does not exist: create it first (CREATE SCHEMA %s)", t.Schema, d.quote(t.Schema))
	default:
		return "no schema of the search_path exists, or this role may not use it: create it, GRANT USAGE ON SCHEMA, or name the schema of the tables"
	}
}

// missing says that a table is missing. The catalogue of MySQL and MariaDB shows only tables that the user has a privilege
// on.
func missing(d Dialect, name string) string {
	if d == MySQL {
		return "table " + name + " is missing, or this user has no privilege on it"
	}
	return "table " + name + " is missing"
}

func (diff *difference) table(d Dialect, wanted wantedTable, table *foundTable) {
	name := diff.tables.display(wanted.name)
	if !table.exists {
		diff.missing = append(diff.missing, missing(d, name))
		return
	}
	if table.odd != "" {
		diff.mistakes = append(diff.mistakes, "table "+name+" is "+table.odd)
		return
	}
	for _, column := range wanted.columns {
		diff.column(d, name, column, table)
	}
	diff.additions(name, wanted, table)
	key := wanted.primary()
	slices.Sort(table.primary) // the catalogues return them in any order
	if _, ok := table.columns[key[0]]; ok && !slices.Equal(table.primary, key) {
		diff.mistakes = append(diff.mistakes, "the primary key of table "+name+" is not "+strings.Join(key, ", "))
	}
}

// lacks adds what is missing of a table of a later release. This release does not know what else the later one wants of
// it.
func (diff *difference) lacks(d Dialect, wanted wantedTable, table *foundTable) {
	name := diff.tables.display(wanted.name)
	if !table.exists {
		diff.mistakes = append(diff.mistakes, missing(d, name))
		return
	}
	if table.odd != "" {
		diff.mistakes = append(diff.mistakes, "table "+name+" is "+table.odd)
		return
	}
	for _, column := range wanted.columns {
		if _, ok := table.columns[column.name]; !ok {
			diff.mistakes = append(diff.mistakes, fmt.Sprintf("column %s.%s is missing", name, column.name))
		}
	}
	diff.additions(name, wanted, table)
}

// additions adds the columns that others have added and that this release cannot leave out when it inserts a row.
func (diff *difference) additions(table string, wanted wantedTable, in *foundTable) {
	for _, name := range slices.Sorted(maps.Keys(in.columns)) {
		known := slices.ContainsFunc(wanted.columns, func(c wantedColumn) bool { return c.name == name })
		if column := in.columns[name]; !known && !column.nullable && !column.hasDefault {
			diff.mistakes = append(diff.mistakes, fmt.Sprintf("column %s.%s is %s, and must have a default or allow NULL", table, name, column))
		}
	}
}

func (diff *difference) column(d Dialect, table string, wanted wantedColumn, in *foundTable) {
	want := foundColumn{typ: columnTypes[d][wanted.kind], nullable: wanted.nullable, hasDefault: wanted.hasDefault}
	got, ok := in.columns[wanted.name]
	if !ok {
		diff.mistakes = append(diff.mistakes, fmt.Sprintf("column %s.%s (%s) is missing", table, wanted.name, want))
		return
	}
	got.hasDefault = got.hasDefault && want.hasDefault // an additional default does no harm
	if got != want {
		diff.mistakes = append(diff.mistakes, fmt.Sprintf("column %s.%s is %s, and must be %s", table, wanted.name, got, want))
	}
}

func (c foundColumn) String() string {
	text := c.typ
	if !c.nullable {
		text += " not null"
	}
	if c.hasDefault {
		text += " with a default"
	}
	return text
}

// appliable reports whether applying the files would fix every difference.
func (diff *difference) appliable() bool {
	return diff.newer == 0 && diff.noPlace == "" && len(diff.mistakes) == 0
}

// err returns nil if there is no difference. Otherwise the error matches sqllock.ErrSchema, lists every difference and
// says how to fix it.
func (diff *difference) err() error {
	if diff.newer != 0 {
		return fmt.Errorf("%w: table %s says version %d, which takes a program that knows version %d, and this one knows version %d: upgrade this program",
			sqllock.ErrSchema, diff.tables.display("version"), diff.newer, diff.lowest, diff.newest)
	}
	if diff.appliable() && len(diff.missing) == 0 {
		return nil
	}
	if diff.noPlace != "" {
		return fmt.Errorf("%w: %s", sqllock.ErrSchema, diff.noPlace)
	}
	var advice []string
	switch {
	case diff.later:
		advice = append(advice, "apply them with the later release that made them")
	case len(diff.mistakes) > 0:
		advice = append(advice, "alter the tables to what `sqllock schema print` shows, for existing tables are never altered for you")
	}
	if len(diff.missing) > 0 {
		advice = append(advice, "run `sqllock schema apply --db …`"+diff.where())
	}
	return fmt.Errorf("%w: %s: %s", sqllock.ErrSchema,
		strings.Join(slices.Concat(diff.mistakes, diff.missing), "; "), strings.Join(advice, ", then "))
}

// where returns a reminder of the names that are not the default.
func (diff *difference) where() string {
	var parts []string
	if diff.tables.prefix() != defaultPrefix {
		parts = append(parts, "prefix "+diff.tables.prefix())
	}
	if diff.tables.Schema != "" {
		parts = append(parts, "schema "+diff.tables.Schema)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (with " + strings.Join(parts, ", ") + ")"
}
