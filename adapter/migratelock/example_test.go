package migratelock_test

import (
	"database/sql"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	pgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/sqllock/sqllock/adapter/migratelock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Up of the Migrate returns migrate.ErrNoChange in the processes that have waited for the one that migrated.
func newMigrator(locker *pg.Locker, db *sql.DB, migrations source.Driver) (*migrate.Migrate, error) {
	driver, err := pgx.WithInstance(db, &pgx.Config{}) // of migrate/v4/database/pgx/v5
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("iofs", migrations, "app", migratelock.Wrap(driver, locker, "migrations"))
}

func TestTheExample(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locker, err := pg.FromDB(db.DB.DB)
	if err != nil {
		t.Fatal(err)
	}
	defer locker.Close()
	migrations, err := iofs.New(fstest.MapFS{"1_orders.up.sql": {Data: []byte("CREATE TABLE orders (id int)")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	m, err := newMigrator(locker, db.DB.DB, migrations)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Up(); err != nil {
		t.Fatal(err)
	}
	if fromSource, fromDatabase := m.Close(); fromSource != nil || fromDatabase != nil {
		t.Errorf("Close: %v, %v", fromSource, fromDatabase)
	}
}
