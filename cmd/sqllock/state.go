package main

import (
	"errors"
	"path/filepath"
	"runtime"
)

// stateFile returns the path of the database for users who name none.
//
// The XDG base directory specification requires that a relative path in XDG_STATE_HOME is ignored.
func stateFile(c *console) (string, error) {
	folder := c.getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(folder) {
		home := c.getenv("HOME")
		switch runtime.GOOS {
		case "windows":
			folder = c.getenv("LocalAppData")
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
