//go:build !sqltest_no_sqlite

package sqltest

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// sqliteFile gives tb a file with a copy of a template, or an empty one.
func sqliteFile(tb TB, t *Template, opts []Option) *Database {
	tb.Helper()
	o := optionsOf(opts)
	if o.version != "" || len(o.extensions) > 0 || o.tls {
		tb.Fatalf("sqltest: SQLite has the version of its driver, no extensions and no TLS: leave out Version, Extension and TLS")
	}
	if os.Getenv("SQLTEST_SQLITE") == "skip" {
		tb.Skipf("sqltest: SQLTEST_SQLITE=skip: not tested on SQLite")
	}
	var content []byte
	if t != nil {
		var err error
		if content, err = t.sqlite(); err != nil {
			tb.Fatalf("sqltest: a template on SQLite: %v", err)
		}
	}
	dir, err := sqliteFolder()
	if err != nil {
		tb.Fatalf("sqltest: a folder for the SQLite file: %v", err)
	}
	file := filepath.Join(dir, "test.db")
	err = os.WriteFile(file, content, 0o600)
	var db *Database
	if err == nil {
		db, err = openSQLite(file, o.settings...)
	}
	if err == nil && len(o.settings) > 0 {
		err = db.PingContext(context.Background())
	}
	if err != nil {
		if db != nil {
			_ = db.Close()
		}
		_ = os.RemoveAll(dir)
		tb.Fatalf("sqltest: %s: %v", file, err)
	}
	tb.Cleanup(func() {
		tb.Helper()
		if err := db.Close(); err != nil {
			tb.Logf("sqltest: close %s: %v", file, err)
		}
		if keep(tb) {
			tb.Logf("sqltest: kept for a look (SQLTEST_KEEP): %s", file)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Logf("sqltest: %v", err)
		}
	})
	return db
}

// sqliteFolder makes a folder for the file of a test. It is in the folder for the files of this run, which ends with the run
// even if the test is killed; not if the file may be kept, or where a script cannot delete it, as in a container without
// /bin/sh.
func sqliteFolder() (string, error) {
	var temp string
	if supported && !isSet("SQLTEST_KEEP") {
		if st, err := openState(); err == nil {
			if inst, err := st.files(); err == nil {
				temp = inst.dir
			}
		}
	}
	return os.MkdirTemp(temp, "sqltest-sqlite-")
}

// openSQLite opens a file. An empty file is an empty database.
func openSQLite(file string, pragmas ...setting) (*Database, error) {
	uri := url.URL{
		Scheme: "file",
		Opaque: (&url.URL{Path: filepath.ToSlash(file)}).EscapedPath(),
	}
	// The busy timeout comes first: switching to WAL may have to wait, too.
	settings := []setting{{"busy_timeout", "5000"}, {"journal_mode", "WAL"}}
	for _, p := range pragmas {
		settings = slices.DeleteFunc(settings, func(s setting) bool { return s.name == p.name })
	}
	var query []string
	for _, p := range append(settings, pragmas...) {
		query = append(query, "_pragma="+p.name+"("+url.QueryEscape(p.value)+")")
	}
	uri.RawQuery = strings.Join(query, "&")
	version, err := sqliteVersion()
	if err != nil {
		return nil, err
	}
	db, err := sqlx.Open("sqlite", uri.String())
	if err != nil {
		return nil, err
	}
	return &Database{
		DB:     db,
		DSN:    uri.String(),
		Engine: EngineSQLite,
		Server: "SQLite " + version + " from modernc.org/sqlite",
	}, nil
}

var sqliteVersion = sync.OnceValues(func() (version string, err error) {
	db, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	err = db.Get(&version, "SELECT sqlite_version()")
	return version, err
})
