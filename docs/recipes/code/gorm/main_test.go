package main

import (
	"context"
	"testing"

	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/sqllock/sqllock/docs/recipes/code/internal/recipetest"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestReports(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]bool{"plain": false, "with prepared statements": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recipetest.Everywhere(t, func(t *testing.T, p adaptertest.Place) recipetest.Program {
				db := open(t, p, gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
				return recipetest.Program{
					Run: func(ctx context.Context) error { return run(ctx, db) },
					Publish: func(ctx context.Context, leases *leasetable.Locker, render recipetest.Render) error {
						return publish(ctx, leases, db, render)
					},
				}
			})
		})
	}
}

func TestOnlyATransactionCanBeGuarded(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	lease, err := p.Leases(t).TryAcquire(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := guard(t.Context(), lease, open(t, p, gorm.Config{})); err == nil {
		t.Error("guard accepts the pool")
	}
}

// A transaction in a transaction is a savepoint of it.
func TestANestedTransactionCanBeGuarded(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	lease, err := p.Leases(t).TryAcquire(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	err = open(t, p, gorm.Config{}).Transaction(func(tx *gorm.DB) error {
		return tx.Transaction(func(tx *gorm.DB) error { return guard(t.Context(), lease, tx) })
	})
	if err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, p adaptertest.Place, config gorm.Config) *gorm.DB {
	t.Helper()
	pool := recipetest.Pool(t, p)
	dialectors := map[sqltest.Engine]gorm.Dialector{
		sqltest.EnginePostgres: postgres.New(postgres.Config{Conn: pool}),
		sqltest.EngineMySQL:    mysql.New(mysql.Config{Conn: pool}),
		sqltest.EngineMariaDB:  mysql.New(mysql.Config{Conn: pool}),
		sqltest.EngineSQLite:   sqlite.New(sqlite.Config{Conn: pool}),
	}
	db, err := gorm.Open(dialectors[p.Engine], &config)
	if err != nil {
		t.Fatal(err)
	}
	return db
}
