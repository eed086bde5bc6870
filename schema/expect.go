package schema

import "slices"

// kind is the kind of value in a column; columnTypes says how each dialect stores it.
type kind int

const (
	kindID     kind = iota // 16 random bytes
	kindBytes              // up to 1024 bytes, compared exactly
	kindText               // up to 255 characters
	kindInt                // 64 bits
	kindNumber             // 32 bits
	kindTime               // microseconds, UTC
)

// columnTypes are the types as the catalogues of the databases spell them, apart from letter case and the display width
// of integers, in which catalogues differ.
var columnTypes = map[Dialect][]string{
	Postgres: {"bytea", "bytea", "text", "bigint", "integer", "timestamp with time zone"},
	MySQL:    {"binary(16)", "varbinary(1024)", "varchar(255)", "bigint", "int", "datetime(6)"},
	SQLite:   {"blob", "blob", "text", "integer", "integer", "integer"},
}

// wantedColumn is a column that the SQL files define.
type wantedColumn struct {
	name       string
	kind       kind
	nullable   bool
	hasDefault bool
}

// wantedTable is a table that the SQL files define. Its first columns are its primary key.
type wantedTable struct {
	name    string
	columns []wantedColumn
	key     int // how many columns that are; 0 for one
}

// wantedTables describes the tables as the newest of the SQL files leaves them. The files are the source; a test on
// each database compares this list with them.
var wantedTables = []wantedTable{
	{
		name: "lease",
		columns: []wantedColumn{
			{name: "id", kind: kindID},
			{name: "owner", kind: kindText},
			{name: "host", kind: kindText},
			{name: "pid", kind: kindInt},
			{name: "ttl_us", kind: kindInt},
			{name: "renewals", kind: kindInt, hasDefault: true},
			{name: "changes", kind: kindInt, hasDefault: true},
			{name: "created_at", kind: kindTime},
			{name: "expires_at", kind: kindTime},
		},
	},
	{
		name: "lock",
		columns: []wantedColumn{
			{name: "name", kind: kindBytes},
			{name: "token", kind: kindInt},
			{name: "lease_id", kind: kindID, nullable: true},
			{name: "acquired_at", kind: kindTime},
			{name: "released_at", kind: kindTime, nullable: true},
			{name: "hold_until", kind: kindTime, nullable: true},
			{name: "waiter_until", kind: kindTime, nullable: true},
			{name: "waiter_since", kind: kindInt, nullable: true},
			{name: "permits", kind: kindInt, nullable: true},
			{name: "exclusive_waiter_until", kind: kindTime, nullable: true},
			{name: "metadata", kind: kindBytes, hasDefault: true},
		},
	},
	{
		name: "permit",
		columns: []wantedColumn{
			{name: "name", kind: kindBytes},
			{name: "token", kind: kindInt},
			{name: "lease_id", kind: kindID},
			{name: "permits", kind: kindInt},
			{name: "acquired_at", kind: kindTime},
		},
		key: 2,
	},
	{
		name:    "version",
		columns: []wantedColumn{{name: "version", kind: kindNumber}, {name: "lowest", kind: kindNumber}},
	},
}

// primary returns the columns of the primary key.
func (t wantedTable) primary() (names []string) {
	for _, column := range t.columns[:max(t.key, 1)] {
		names = append(names, column.name)
	}
	return names
}

func isTable(name string) bool {
	return slices.ContainsFunc(wantedTables, func(table wantedTable) bool { return table.name == name })
}
