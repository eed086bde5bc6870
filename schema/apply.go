package schema

import (
	"context"
	"database/sql"
	"fmt"
)

// applyLock is the PostgreSQL advisory lock, in the database of the tables, under which
// tables are created: "sqllock\0" as a number. CREATE TABLE IF NOT EXISTS alone is not safe
// to race: the loser may get 23505 from the index of pg_type.
const applyLock = 0x73716c6c6f636b00

// Apply creates what is missing of the tables, and returns nil when they are as [Check]
// wants them. It may be called again, and by any number of processes at once. When nothing
// is missing it only reads, so that a role without the right to create tables may call it.
//
// It never alters a table that exists, so it refuses with [sqllock.ErrSchema], before it has
// changed anything, when a column is missing or different or when the tables are of a later
// release that does not let this one use them. Where it does, Apply changes nothing and returns nil, so a program that is rolled back
// starts. It does not create a PostgreSQL schema either: one that does not exist is
// the same error, for a wrong name is likelier than a missing schema, and who may use a new
// schema is for its owner to say. An index that is missing is built without CONCURRENTLY.
//
// On PostgreSQL and SQLite everything is one transaction: an error leaves nothing behind. On
// MySQL and MariaDB, where each CREATE TABLE commits, calling Apply again goes on from there.
//
// A database that is busy, or another migration that runs at the same time, is tried again
// for up to ten seconds.
//
// A transaction pooler may be in between: with pgx as the driver, nothing is prepared; this holds for Check, too.
func Apply(ctx context.Context, db *sql.DB, d Dialect, t Tables) error {
	if err := validate(db, d, t); err != nil {
		return err
	}
	diff, err := examine(ctx, db, d, t)
	if err != nil {
		return err
	}
	if diff.err() == nil || !diff.appliable() {
		return diff.err()
	}
	err = patiently(ctx, func() error {
		return writing(ctx, db, d, func(q querier) error { return create(ctx, q, d, t) })
	})
	if err != nil {
		return err
	}
	return Check(ctx, db, d, t)
}

// create runs the files that are not applied yet. The first one is always run: all of it may
// be run again, and it mends a table or an index that was dropped.
func create(ctx context.Context, q querier, d Dialect, t Tables) error {
	if d == Postgres {
		if _, err := q.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", int64(applyLock))); err != nil {
			return fmt.Errorf("schema: wait for others who apply: %w", err)
		}
	}
	// Another process may have applied since the first look.
	f, err := inspect(ctx, q, d, t)
	if err != nil {
		return err
	}
	diff := compare(f, d, t)
	if diff.err() == nil || !diff.appliable() {
		return diff.err()
	}
	files, err := filesOf(d)
	if err != nil {
		return err
	}
	for _, file := range files {
		if file.version > 1 && file.version <= f.version {
			continue
		}
		for _, statement := range statements(t.Rewrite(d, file.sql)) {
			if _, err := q.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("schema: apply version %d: %w", file.version, err)
			}
		}
	}
	return nil
}
