package schema

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// Version is the version of the tables that this release works with.
const Version = 1

// Files has the definition of the tables in plain SQL, with the default names, for a
// migration tool: sql/postgres, sql/mysql (MariaDB too) and sql/sqlite, each with files
// named 0001_….sql and so on, to be run once and in order.
//
//go:embed sql
var Files embed.FS

// file is one numbered file.
type file struct {
	version int
	sql     string
}

// filesOf returns the files of a dialect in order.
func filesOf(d Dialect) ([]file, error) {
	dir := path.Join("sql", string(d))
	entries, err := fs.ReadDir(Files, dir)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	files := make([]file, 0, len(entries))
	for _, entry := range entries {
		number, _, _ := strings.Cut(entry.Name(), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("schema: file %s has no number: %w", entry.Name(), err)
		}
		sql, err := fs.ReadFile(Files, path.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("schema: %w", err)
		}
		files = append(files, file{version: version, sql: string(sql)})
	}
	return files, nil
}

// newest returns the version of the tables after all files of a dialect.
func newest(files []file) int { return files[len(files)-1].version }

// Print writes the definition of the tables as SQL that any client of the database can run. With the default names it
// is the content of [Files]. It fails if d or t is not valid, or with the error of w.
func Print(w io.Writer, d Dialect, t Tables) error {
	if err := t.Validate(d); err != nil {
		return err
	}
	files, err := filesOf(d)
	if err != nil {
		return err
	}
	for _, f := range files {
		if _, err := io.WriteString(w, t.Rewrite(d, f.sql)); err != nil {
			return fmt.Errorf("schema: print: %w", err)
		}
	}
	return nil
}
