package migratelock_test

import (
	"database/sql"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	"github.com/golang-migrate/migrate/v4/database/mysql"
	pgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/database/sqlite"
	"github.com/golang-migrate/migrate/v4/source/iofs"

	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/sqltest"
)

// newDriver returns the driver of migrate for a place, with a pool of its own, like that of another process. It is closed
// when the test ends.
func newDriver(t *testing.T, p adaptertest.Place) database.Driver {
	t.Helper()
	d := openDriver(t, p)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

// openDriver is newDriver for a test that closes the driver.
func openDriver(t *testing.T, p adaptertest.Place) database.Driver {
	t.Helper()
	db, err := sql.Open(p.DriverName(), p.DSN)
	if err != nil {
		t.Fatal(err)
	}
	var d database.Driver
	switch p.Engine {
	case sqltest.EnginePostgres:
		d, err = pgx.WithInstance(db, &pgx.Config{})
	case sqltest.EngineSQLite:
		d, err = sqlite.WithInstance(db, &sqlite.Config{})
	default:
		d, err = mysql.WithInstance(db, &mysql.Config{NoLock: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newMigrate returns a Migrate of migrations, the first of which is version 1.
func newMigrate(t *testing.T, d database.Driver, migrations ...string) *migrate.Migrate {
	t.Helper()
	m, err := migrateOf(d, migrations...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func migrateOf(d database.Driver, migrations ...string) (*migrate.Migrate, error) {
	files := fstest.MapFS{}
	for i, text := range migrations {
		files[string(rune('1'+i))+"_x.up.sql"] = &fstest.MapFile{Data: []byte(text)}
	}
	source, err := iofs.New(files, ".")
	if err != nil {
		return nil, err
	}
	return migrate.NewWithInstance("iofs", source, "test", d)
}

// observed is a real driver that tells what is done with it.
type observed struct {
	database.Driver
	run    func(run func() error) error // instead of Run, if it is not nil
	locked func(err error)              // what Lock returns, if it is not nil
	closes func()                       // before Close, if it is not nil
}

func (o observed) Run(migration io.Reader) error {
	if o.run == nil {
		return o.Driver.Run(migration)
	}
	return o.run(func() error { return o.Driver.Run(migration) })
}

func (o observed) Lock() error {
	err := o.Driver.Lock()
	if o.locked != nil {
		o.locked(err)
	}
	return err
}

func (o observed) Close() error {
	if o.closes != nil {
		o.closes()
	}
	return o.Driver.Close()
}

func statement(text string) io.Reader { return strings.NewReader(text) }
