package main

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock/docs/recipes/code/internal/recipetest"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestReports(t *testing.T) {
	t.Parallel()
	recipetest.On(t, sqltest.EnginePostgres, func(t *testing.T, p adaptertest.Place) recipetest.Program {
		pool, err := pgxpool.New(t.Context(), p.DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return recipetest.Program{
			Run: func(ctx context.Context) error { return run(ctx, pool) },
			Publish: func(ctx context.Context, leases *leasetable.Locker, render recipetest.Render) error {
				return publish(ctx, leases, pool, render)
			},
		}
	})
}
