package database

import (
	"errors"
	"path/filepath"
	"runtime"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
)

// stateFile returns the path of the database for users who name none.
//
// The XDG base directory specification requires that a relative path in XDG_STATE_HOME is ignored.
func stateFile(c *console.Console) (string, error) {
	folder := c.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) {
		home := c.Getenv("HOME")
		switch runtime.GOOS {
		case "windows":
			folder = c.Getenv("LocalAppData")
		case "darwin", "ios":
			folder = filepath.Join(home, "Library", "Application Support")
		default:
			folder = filepath.Join(home, ".local", "state")
		}
		if !filepath.IsAbs(folder) {
			return "", errors.New("no database is named, and without a home folder there is no place for one: use --db, --db-file or SQLLOCK_DB")
		}
	}
	return filepath.Join(folder, "sqllock", "sqllock.db"), nil
}
