package main

import (
	"context"
	"testing"

	"github.com/sqllock/sqllock/docs/recipes/code/internal/recipetest"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

func TestReports(t *testing.T) {
	t.Parallel()
	recipetest.Everywhere(t, func(t *testing.T, p adaptertest.Place) recipetest.Program {
		dialect, err := schema.DialectOf(p.DriverName())
		if err != nil {
			t.Fatal(err)
		}
		pool := recipetest.Pool(t, p)
		client := newClient(pool, dialect)
		return recipetest.Program{
			Run: func(ctx context.Context) error { return run(ctx, pool, dialect) },
			Publish: func(ctx context.Context, leases *leasetable.Locker, render recipetest.Render) error {
				return publish(ctx, leases, client, render)
			},
		}
	})
}
