// Package recipes_test has the recipes of docs/test-databases.md as tests, and a benchmark beside a peer. It is a module of
// its own, so that nobody else gets its dependencies.
package recipes_test

import (
	"context"
	"embed"
	"io/fs"
	"strings"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"

	"github.com/sqllock/sqllock/sqltest"
)

//go:embed migrations
var migrations embed.FS

//go:embed goose
var gooseFiles embed.FS

var plain = sqltest.SQLFiles(migrations)

var withMigrate = sqltest.MigratedFrom(migrations, func(_ context.Context, db *sqltest.Database) error {
	source, err := iofs.New(migrations, "migrations")
	if err != nil {
		return err
	}
	m, err := migrate.NewWithSourceInstance("iofs", source, strings.Replace(db.DSN, "postgres://", "pgx5://", 1))
	if err != nil {
		return err
	}
	defer func() { _, _ = m.Close() }()
	return m.Up()
})

var withGoose = sqltest.MigratedFrom(gooseFiles, func(ctx context.Context, db *sqltest.Database) error {
	files, err := fs.Sub(gooseFiles, "goose")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db.DB.DB, files)
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
})

func TestAServiceWithAPoolOfPgx(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]*sqltest.Template{"plain SQL": plain, "golang-migrate": withMigrate, "goose": withGoose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, err := pgxpool.New(t.Context(), template.Postgres(t).DSN)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			var n int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM goods").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d goods, %v; want 2", n, err)
			}
		})
	}
}
