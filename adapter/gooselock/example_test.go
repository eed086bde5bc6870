package gooselock_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gooselock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func migrateByGoose(ctx context.Context, locker *pg.Locker, db *sql.DB, migrations fs.FS) error {
	p, err := goose.NewProvider(goose.DialectPostgres, db, migrations, goose.WithLocker(gooselock.New(locker, "migrations")))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// The same without goose's locker: the migrations are interrupted when the lock is lost.
func migrateWhileLocked(ctx context.Context, locker sqllock.Locker, p *goose.Provider) error {
	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
		_, err := p.Up(ctx)
		return err
	})
}

func TestTheExamples(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locker, err := pg.FromDB(db.DB.DB)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	migrations := fstest.MapFS{
		"1_orders.sql": {Data: []byte("-- +goose Up\nCREATE TABLE orders (id int);\n")},
	}
	if err := migrateByGoose(t.Context(), locker, db.DB.DB, migrations); err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db.DB.DB, migrations)
	if err != nil {
		t.Fatal(err)
	}
	if pending, err := p.HasPending(t.Context()); err != nil || pending {
		t.Errorf("something is left to migrate: %t, %v", pending, err)
	}

	p, err = goose.NewProvider(goose.DialectPostgres, db.DB.DB, nil, goose.WithDisableGlobalRegistry(true),
		goose.WithGoMigrations(migration(2, func(ctx context.Context, _ *sql.DB) error {
			return terminateAll(ctx, db)
		})))
	if err != nil {
		t.Fatal(err)
	}
	if err := migrateWhileLocked(t.Context(), locker, p); !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("a migration whose lock is lost: %v", err)
	}
}

// terminateAll ends all sessions that hold advisory locks, and waits until the caller is told.
func terminateAll(ctx context.Context, db *sqltest.Database) error {
	_, err := db.ExecContext(ctx, "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND database = "+
		"(SELECT oid FROM pg_database WHERE datname = current_database())")
	if err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}
