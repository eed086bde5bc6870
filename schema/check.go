package schema

import (
	"context"
	"database/sql"
	"errors"
)

// Check returns nil if the tables are as this release needs them. Otherwise the error matches [sqllock.ErrSchema],
// lists every difference (a missing table or column, a column of another type, an older or newer version) and
// says how to fix it. An error that does not match says that the database could not be asked.
//
// Check only reads, from the catalogue and the table of versions.
func Check(ctx context.Context, db *sql.DB, d Dialect, t Tables) error {
	if err := validate(db, d, t); err != nil {
		return err
	}
	diff, err := examine(ctx, db, d, t, Version)
	if err != nil {
		return err
	}
	return diff.err()
}

// validate returns an error if the arguments are invalid.
func validate(db *sql.DB, d Dialect, t Tables) error {
	if err := t.Validate(d); err != nil {
		return err
	}
	if db == nil {
		return errors.New("schema: the *sql.DB is nil")
	}
	return nil
}

// examine compares the tables in the database with the tables that this release needs, which have the version newest.
func examine(ctx context.Context, db *sql.DB, d Dialect, t Tables, newest int) (*difference, error) {
	var diff *difference
	err := patiently(ctx, func() error {
		return reading(ctx, db, d, func(q querier) error {
			f, err := inspect(ctx, q, d, t)
			if err != nil {
				return err
			}
			diff = compare(f, d, t, newest)
			return nil
		})
	})
	return diff, err
}
