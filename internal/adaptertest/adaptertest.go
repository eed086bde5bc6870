// Package adaptertest runs a test of an adapter with every kind of lock on every database.
package adaptertest

import (
	"context"
	"database/sql"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// Place is an empty database, and a kind of lock in it: leases, whose tables it has, or session locks.
type Place struct {
	*sqltest.Database
	Lease bool
}

var open = map[sqltest.Engine]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
	sqltest.EnginePostgres: sqltest.Postgres,
	sqltest.EngineMySQL:    sqltest.MySQL,
	sqltest.EngineMariaDB:  sqltest.MariaDB,
	sqltest.EngineSQLite:   sqltest.SQLite,
}

// All returns a Place for each kind of lock of each engine, for a test that looks at all of them at the same time. It omits
// engines that the environment leaves out.
func All(t *testing.T) (all []Place) {
	t.Helper()
	for engine := range open {
		if os.Getenv("SQLTEST_"+strings.ToUpper(string(engine))) == "skip" {
			continue
		}
		all = append(all, At(t, engine, true))
		if engine != sqltest.EngineSQLite {
			all = append(all, At(t, engine, false))
		}
	}
	return all
}

// Everywhere runs a test in a Place of its own for each kind of lock of each engine.
func Everywhere(t *testing.T, test func(t *testing.T, p Place)) {
	t.Helper()
	Leases(t, test)
	for engine := range open {
		if engine != sqltest.EngineSQLite {
			run(t, "session", engine, test)
		}
	}
}

// Leases runs a test in a Place of its own for leases on each engine.
func Leases(t *testing.T, test func(t *testing.T, p Place)) {
	t.Helper()
	for engine := range open {
		run(t, "lease", engine, test)
	}
}

func run(t *testing.T, kind string, engine sqltest.Engine, test func(t *testing.T, p Place)) {
	t.Helper()
	t.Run(kind+" "+string(engine), func(t *testing.T) {
		t.Parallel()
		test(t, At(t, engine, kind == "lease"))
	})
}

// At returns a Place on a server of the engine. The options are those of its database.
func At(t *testing.T, engine sqltest.Engine, lease bool, opts ...sqltest.Option) Place {
	t.Helper()
	p := Place{open[engine](t, opts...), lease}
	if !lease {
		return p
	}
	d, err := schema.DialectOf(p.DriverName())
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Apply(t.Context(), p.DB.DB, d, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	return p
}

// Locker opens a Locker, like another process. It is closed when the test ends.
func (p Place) Locker(t *testing.T) sqllock.Locker {
	t.Helper()
	if p.Lease {
		return sqllock.AnyKind(p.Leases(t))
	}
	if p.Engine == sqltest.EnginePostgres {
		l, err := pg.FromDB(p.DB.DB)
		closing(t, l, err)
		return l
	}
	l, err := mysql.FromDB(p.DB.DB)
	closing(t, l, err)
	return l
}

// Leases opens a Locker of leases, like another process. It is closed when the test ends.
func (p Place) Leases(t *testing.T, opts ...leasetable.Option) *leasetable.Locker {
	t.Helper()
	l, err := leasetable.FromDB(p.DB.DB, opts...)
	closing(t, l, err)
	return l
}

// Far opens a Locker of leases whose connections go through a network. It sends the error of each acquisition that fails. The
// server must not be SQLite.
func (p Place) Far(t *testing.T) (*leasetable.Locker, *sqltest.Network, <-chan error) {
	t.Helper()
	network := p.Network(t)
	db, err := sql.Open(p.DriverName(), network.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	failed := make(chan error, 1000)
	l, err := leasetable.FromDB(db, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Failed {
			failed <- e.Err
		}
	}))
	closing(t, l, err)
	return l, network, failed
}

func closing(t *testing.T, l io.Closer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}
