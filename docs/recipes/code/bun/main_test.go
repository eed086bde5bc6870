package main

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	bunschema "github.com/uptrace/bun/schema"

	"github.com/sqllock/sqllock/docs/recipes/code/internal/recipetest"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestReports(t *testing.T) {
	t.Parallel()
	recipetest.Everywhere(t, func(t *testing.T, p adaptertest.Place) recipetest.Program {
		db := open(t, p)
		dialect, err := schema.DialectOf(p.DriverName())
		if err != nil {
			t.Fatal(err)
		}
		return recipetest.Program{
			Run: func(ctx context.Context) error { return run(ctx, db, dialect) },
			Publish: func(ctx context.Context, leases *leasetable.Locker, render recipetest.Render) error {
				return publish(ctx, leases, db, render)
			},
		}
	})
}

// What the page warns of: on PostgreSQL a guard of the bun.Tx itself fails, and so the transaction writes nothing.
func TestAGuardOfTheBunTxFails(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	lease, err := p.Leases(t).TryAcquire(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	err = open(t, p).RunInTx(t.Context(), nil, func(ctx context.Context, tx bun.Tx) error {
		return lease.Guard(ctx, leasetable.SQLTx(tx))
	})
	if err == nil {
		t.Error("it succeeded: the page need not warn of it")
	}
}

func open(t *testing.T, p adaptertest.Place) *bun.DB {
	t.Helper()
	dialects := map[sqltest.Engine]bunschema.Dialect{
		sqltest.EnginePostgres: pgdialect.New(),
		sqltest.EngineMySQL:    mysqldialect.New(),
		sqltest.EngineMariaDB:  mysqldialect.New(),
		sqltest.EngineSQLite:   sqlitedialect.New(),
	}
	return bun.NewDB(recipetest.Pool(t, p), dialects[p.Engine])
}
