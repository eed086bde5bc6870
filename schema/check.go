package schema

import (
	"context"
	"database/sql"
	"errors"
)

// Check returns nil if the tables are as this release needs them. Otherwise the error
// matches [sqllock.ErrSchema], says everything that differs (a missing table, column or
// index, a column of another type, an older or newer version) and how to mend it. An error
// that does not match says that the database could not be asked.
//
// Check only reads, from the catalogue and the one row of the version.
func Check(ctx context.Context, db *sql.DB, d Dialect, t Tables) error {
	if err := validate(db, d, t); err != nil {
		return err
	}
	diff, err := examine(ctx, db, d, t)
	if err != nil {
		return err
	}
	return diff.err()
}

// validate says what is wrong with the arguments.
func validate(db *sql.DB, d Dialect, t Tables) error {
	if db == nil {
		return errors.New("schema: the *sql.DB is nil")
	}
	return t.Validate(d)
}

// examine compares what is there with what is wanted.
func examine(ctx context.Context, db *sql.DB, d Dialect, t Tables) (*difference, error) {
	var diff *difference
	err := patiently(ctx, func() error {
		return reading(ctx, db, d, func(q querier) error {
			f, err := inspect(ctx, q, d, t)
			if err != nil {
				return err
			}
			diff = compare(f, d, t)
			return nil
		})
	})
	return diff, err
}
