package sqltest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

// Template is what a migration makes of an empty database. Each of its methods gives a test a copy:
//
//	//go:embed migrations/*.sql
//	var files embed.FS
//
//	var shop = sqltest.SQLFiles(files)
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		db := shop.Postgres(t)
//		…
//	}
//
// The migration runs once on each server, whichever test process comes first; the others wait for it. If it fails, it is
// not repeated in this run, and every test that needs it fails with its error. Nothing half migrated is ever copied, also
// when a test process is killed: what it has left is dropped, and the migration runs again.
//
// On a server that sqltest has started, the template ends with the server. On a server named by a DSN it stays, as the
// database sqltest_template_…, and later runs use it. It is dropped when it has not been used for thirty days. If somebody
// else drops it, the migration runs again.
//
// A copy has all that the migration made inside of the database: tables with their data, indexes, constraints, generated
// columns and auto-increments, views, triggers, routines, sequences, types, extensions and events. What the migration made
// elsewhere (roles, grants, settings of the server) is there as well, but once for all copies. Privileges on the database
// itself are not copied.
//
// A Template may be used by several goroutines, and on several kinds of servers.
type Template struct {
	key     func() (string, error)
	migrate func(ctx context.Context, db *Database) error
}

// Migrated returns a Template for what migrate makes of an empty database. The key and the package of the function stand for the
// result: the key must change whenever migrate makes something else, and must contain what a closure has captured. The context of
// migrate ends after ten minutes.
//
// Migrate gets a database of its own, whose connections are closed after it has returned. Where the migration is done by a
// command, pass it db.DSN.
func Migrated(key string, migrate func(ctx context.Context, db *Database) error) *Template {
	// The name of a closure is not the same where the compiler has inlined the function around it.
	name := nameOf(migrate)
	dir := strings.LastIndex(name, "/") + 1
	base, _, _ := strings.Cut(name[dir:], ".")
	key = name[:dir] + base + " " + key
	return &Template{
		key:     func() (string, error) { return "key " + key, nil },
		migrate: migrate,
	}
}

// MigratedFrom returns a Template for what migrate makes of an empty database with the files of fsys. The key is a hash of
// the names and contents of all of them and of the name of the function, so migrate runs again when a file has changed,
// but not when only the code of migrate or what a closure has captured has.
func MigratedFrom(fsys fs.FS, migrate func(ctx context.Context, db *Database) error) *Template {
	return fromFiles(fsys, nameOf(migrate), migrate)
}

func fromFiles(fsys fs.FS, name string, migrate func(ctx context.Context, db *Database) error) *Template {
	return &Template{
		key: sync.OnceValues(func() (string, error) {
			hash, err := hashFiles(fsys)
			return "files " + hash + " " + name, err
		}),
		migrate: migrate,
	}
}

// nameOf returns the name of a function, which begins with that of its package.
func nameOf(migrate func(ctx context.Context, db *Database) error) string {
	return runtime.FuncForPC(reflect.ValueOf(migrate).Pointer()).Name()
}

// SQLFiles returns a Template for what the files of fsys make of an empty database: those whose names end in .sql, but not
// in .down.sql, in the order of their paths. Each may have several statements and is sent to the server as one text, which
// PostgreSQL runs as one transaction. It is for plain SQL: the comments by which goose and other tools mark what undoes a
// migration mean nothing here.
func SQLFiles(fsys fs.FS) *Template {
	// Where the compiler inlines this function, the name of the closure is another one.
	return fromFiles(fsys, "SQLFiles", func(ctx context.Context, db *Database) error { return runFiles(ctx, db, fsys) })
}

// Postgres gives tb a copy on PostgreSQL; see the function [Postgres].
func (t *Template) Postgres(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EnginePostgres, t, opts)
}

// MySQL gives tb a copy on MySQL; see the function [MySQL].
func (t *Template) MySQL(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMySQL, t, opts)
}

// MariaDB gives tb a copy on MariaDB; see the function [MariaDB].
func (t *Template) MariaDB(tb TB, opts ...Option) *Database {
	tb.Helper()
	return onSharedServer(tb, EngineMariaDB, t, opts)
}

// SQLite gives tb a copy in a file of its own; see the function [SQLite].
func (t *Template) SQLite(tb TB, opts ...Option) *Database {
	tb.Helper()
	return sqliteFile(tb, t, opts)
}

// On gives tb a copy on a server of its own. The migration runs once on each such server.
func (t *Template) On(tb TB, s *Server, opts ...Option) *Database {
	tb.Helper()
	return s.database(tb, t, opts)
}

// format is part of every name, so that a template that another version of this package has made is not used.
const format = "1"

// name returns the name of the template's database, which is different for each user of a server: what one user has made, the
// other may not be allowed to use.
func (t *Template) name(user string) (string, error) {
	key, err := t.key()
	if err != nil {
		return "", fmt.Errorf("read the files of a template: %w", err)
	}
	sum := sha256.Sum256([]byte(format + " " + user + " " + key))
	return "sqltest_template_" + hex.EncodeToString(sum[:10]), nil
}
