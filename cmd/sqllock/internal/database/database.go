// Package database opens the database that the flags or the environment name, and the Lockers on it. With package
// doctor it is the only one that knows the drivers.
package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	gomysql "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/doctor"
	"github.com/sqllock/sqllock/schema"
)

// ConnectTimeout bounds the opening of a connection unless the URL sets a timeout: a server that does not answer must
// lead to an error, not to an endless wait. Several hosts share the time.
const ConnectTimeout = 15 * time.Second

// InspectTimeout bounds the query for the holder.
const InspectTimeout = 5 * time.Second

// Database is an opened database. It connects when it is first used.
type Database struct {
	*sqlx.DB
	Dialect  schema.Dialect
	file     string          // the SQLite file
	folder   string          // the folder of the user's own file, which is created before use; empty: the database was named
	postgres *pgx.ConnConfig // PostgreSQL: the configuration from the URL
	mysql    *gomysql.Config // MySQL and MariaDB

	password func(former string) string // what a new connection uses instead of former; nil: former

	Logger *slog.Logger                         // nil: Lockers log nothing; for them, as is Hook
	Hook   func(context.Context, sqllock.Event) // may be nil
}

// Attrs returns log attributes that identify the database, without secrets.
func (db *Database) Attrs() []any {
	switch db.Dialect {
	case schema.SQLite:
		return []any{slog.String("engine", "SQLite"), slog.String("file", db.file)}
	case schema.MySQL:
		return []any{slog.String("engine", "MySQL"), slog.String("address", db.mysql.Addr), slog.String("database", db.mysql.DBName)}
	}
	return []any{
		slog.String("engine", "PostgreSQL"), slog.String("address", strings.Join(postgresHosts(db.postgres), ",")),
		slog.String("database", db.postgres.Database),
	}
}

// Close closes the pool that schema used. An error has no remedy.
func (db *Database) Close() { _ = db.DB.Close() }

// MakeFile creates the SQLite file, and the folder of the user's own file, for that user only. SQLite would let all users read
// the file, and a process that may read it may lock it: no lease could be renewed.
func (db *Database) MakeFile() error {
	if db.folder != "" {
		if err := os.MkdirAll(db.folder, 0o700); err != nil {
			return fmt.Errorf("no database is named by --db, --db-file or SQLLOCK_DB, and there is no place for one: %w", err)
		}
	}
	if db.Dialect != schema.SQLite {
		return nil
	}
	// A file that exists is not opened: at its close the system would end the locks that SQLite has on it in this process.
	// What is wrong with the place SQLite will say.
	if file, err := os.OpenFile(db.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_ = file.Close() // nothing was written
	}
	return nil
}

// Prepare makes an SQLite database ready for leases. On a server it does nothing: only the schema command creates
// tables there.
func (db *Database) Prepare(ctx context.Context, t schema.Tables) error {
	if db.Dialect != schema.SQLite {
		return nil
	}
	if err := db.MakeFile(); err != nil {
		return err
	}
	if err := schema.Apply(ctx, db.DB.DB, db.Dialect, t); err != nil {
		return fmt.Errorf("create the tables in the SQLite file: %w", err)
	}
	return nil
}

// Now returns the time of the clock that records holders. This machine's clock may differ.
func (db *Database) Now(ctx context.Context) (time.Time, error) {
	query := "SELECT (extract(epoch FROM clock_timestamp()) OPERATOR(pg_catalog.*) 1000000)::bigint"
	switch db.Dialect {
	case schema.SQLite:
		return time.Now(), nil
	case schema.MySQL:
		query = "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))"
	}
	ctx, cancel := context.WithTimeout(ctx, ConnectTimeout)
	defer cancel()
	var micros int64
	err := db.GetContext(ctx, &micros, query)
	return time.UnixMicro(micros), err
}

// DoctorTarget returns what the doctor examines of this database.
func (db *Database) DoctorTarget(t schema.Tables) doctor.Target {
	target := doctor.Target{
		DB: db.DB, Dialect: db.Dialect, Tables: t, Now: db.Now,
		Open: func(ctx context.Context) error { return errors.Join(db.Prepare(ctx, t), db.PingContext(ctx)) },
	}
	if config := db.postgres; config != nil {
		target.Hosts, target.AsksRole, target.ConnectTimeout = postgresHosts(config), config.ValidateConnect != nil, config.ConnectTimeout
	}
	return target
}
