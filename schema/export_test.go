package schema

import (
	"context"
	"database/sql"
)

// ApplyNext is what Apply does in a release with one more file.
func ApplyNext(ctx context.Context, db *sql.DB, d Dialect, t Tables, next string) error {
	files, err := filesOf(d)
	if err != nil {
		return err
	}
	return applyFiles(ctx, db, d, t, append(files, file{version: Version + 1, sql: next}))
}
