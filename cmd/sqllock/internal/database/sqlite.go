package database

import (
	"errors"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/sqllock/sqllock/schema"
)

// openSQLiteURL opens the path after "sqlite:", which is used literally.
func openSQLiteURL(path string) (*Database, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if !strings.HasPrefix(rest, "/") {
			return nil, errors.New("sqlite:// needs a third slash and an absolute path; a relative one is sqlite:PATH")
		}
		path = rest
		if drive := strings.TrimPrefix(rest, "/"); filepath.VolumeName(drive) != "" {
			path = drive
		}
	}
	switch path {
	case "":
		return nil, errors.New("sqlite: needs a path, as in sqlite:/var/lib/locks.db")
	case ":memory:":
		return nil, errors.New("a database in memory locks nobody out; name a file, as in sqlite:/var/lib/locks.db")
	}
	return openSQLite(path)
}

func openSQLite(path string) (*Database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	file := path
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/…
		path = "/" + path
	}
	uri := url.URL{
		Scheme: "file",
		Opaque: (&url.URL{Path: path}).EscapedPath(),
		// The busy timeout comes first: switching to WAL may have to wait, too.
		RawQuery: "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)",
	}
	db, err := sqlx.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	return &Database{DB: db, Dialect: schema.SQLite, file: file}, nil
}
