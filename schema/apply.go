package schema

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// applyLock is the PostgreSQL advisory lock, in the database of the tables, under which tables are created: "sqllock\0"
// as a number. CREATE TABLE IF NOT EXISTS alone is not safe in a race: the loser may get 23505 from the index of
// pg_type.
const applyLock = 0x73716c6c6f636b00

// Apply creates what is missing of the tables, and returns nil when they are as [Check] wants them. It can be called
// again, and by any number of processes at once. If nothing is missing it only reads, so a role without the right to
// create tables can call it.
//
// Apply never alters a table that exists. It refuses with [sqllock.ErrSchema], before it has changed anything, if a
// column is missing or different, or if the tables are of a later release that does not let this one use them. If the
// later release lets this one use them, Apply changes nothing and returns nil, so a program that is rolled back starts.
// Apply does not create a PostgreSQL schema. A schema that does not exist is the same error: a wrong name is likelier
// than a missing schema, and the owner of a new schema decides which roles may use it. So is a schema of the search path
// that has tables and that the role may not use: PostgreSQL passes over it, and a name would have two holders.
//
// On PostgreSQL and SQLite everything is one transaction: an error leaves nothing behind. On MySQL and MariaDB each
// CREATE TABLE commits, and another call of Apply continues from there.
//
// If the database is busy, or another migration runs at the same time, Apply tries again for up to ten seconds. It waits
// for a table for a second at a time, because the statements of others queue behind it, renewals among them.
//
// Apply and Check work behind a transaction pooler: with pgx as the driver, they prepare nothing.
func Apply(ctx context.Context, db *sql.DB, d Dialect, t Tables) error {
	if err := validate(db, d, t); err != nil {
		return err
	}
	files, err := filesOf(d)
	if err != nil {
		return err
	}
	return applyFiles(ctx, db, d, t, files)
}

// applyFiles is Apply with these files.
func applyFiles(ctx context.Context, db *sql.DB, d Dialect, t Tables, files []file) error {
	diff, err := examine(ctx, db, d, t, newest(files))
	if err != nil {
		return err
	}
	if diff.err() == nil || !diff.appliable() {
		return diff.err()
	}
	return patiently(ctx, func() error {
		return writing(ctx, db, d, func(q querier) error { return create(ctx, q, d, t, files) })
	})
}

// inTheirSchema makes the schema of the first existing table of $1 the search path of the transaction. Where that schema is
// not the first one of the search path, CREATE TABLE would make other tables in the first, which hide these.
const inTheirSchema = `SELECT pg_catalog.set_config('search_path', pg_catalog.quote_ident(n.nspname), true)
FROM pg_catalog.unnest(pg_catalog.string_to_array($1, ' ')) WITH ORDINALITY wanted (name, number)
JOIN pg_catalog.pg_class c ON c.oid = to_regclass(name)::oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY number LIMIT 1`

// create runs the files that are not applied yet, and the first one if a table was dropped: all of it may be run
// again. Otherwise it leaves the first one alone: that locks tables though it finds nothing to do, and only their owner
// may run it. It returns the difference that is left. A caller that looked for it after the commit might ask a replica,
// behind a proxy that sends reads there.
func create(ctx context.Context, q querier, d Dialect, t Tables, files []file) error {
	if d == Postgres {
		if _, err := q.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(applyLock))); err != nil {
			return fmt.Errorf("schema: wait for others who apply: %w", err)
		}
		// Renewals queue behind a statement that waits for their table. patiently lets them through.
		if _, err := q.ExecContext(ctx, "SET LOCAL lock_timeout = '1s'"); err != nil {
			return fmt.Errorf("schema: limit waits for tables: %w", err)
		}
	}
	// Another process may have applied the files since they were inspected.
	f, err := inspect(ctx, q, d, t)
	if err != nil {
		return err
	}
	diff := compare(f, d, t, newest(files))
	if diff.err() == nil || !diff.appliable() {
		return diff.err()
	}
	if d == Postgres && t.Schema == "" {
		var tables []string
		for _, wanted := range wantedTables {
			tables = append(tables, t.Rewrite(d, defaultPrefix+wanted.name))
		}
		if _, err := q.ExecContext(ctx, inTheirSchema, strings.Join(tables, " ")); err != nil {
			return fmt.Errorf("schema: look for tables: %w", err)
		}
	}
	for _, file := range files {
		if file.version <= f.version && (file.version > 1 || diff.whole) {
			continue
		}
		for _, statement := range statements(t.Rewrite(d, file.sql)) {
			if _, err := q.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("schema: apply version %d: %w", file.version, err)
			}
		}
	}
	if f, err = inspect(ctx, q, d, t); err != nil {
		return err
	}
	return compare(f, d, t, newest(files)).err()
}
