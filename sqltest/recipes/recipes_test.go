// Package recipes_test has the recipes of docs/test-databases.md as tests, and a benchmark beside a peer. It is a module of
// its own, so that nobody else gets its dependencies.
package recipes_test

import (
	"context"
	"embed"
	"io/fs"
	"strings"
	"testing"

	atlasmigrate "ariga.io/atlas/sql/migrate"
	atlaspostgres "ariga.io/atlas/sql/postgres"
	"github.com/golang-migrate/migrate/v4"
	_ "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"

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

//go:embed atlas
var atlasFiles embed.FS

var withAtlas = sqltest.MigratedFrom(atlasFiles, func(ctx context.Context, db *sqltest.Database) error {
	dir, err := atlasmigrate.NewLocalDir("atlas")
	if err != nil {
		return err
	}
	driver, err := atlaspostgres.Open(db.DB.DB)
	if err != nil {
		return err
	}
	executor, err := atlasmigrate.NewExecutor(driver, dir, atlasmigrate.NopRevisionReadWriter{})
	if err != nil {
		return err
	}
	return executor.ExecuteN(ctx, 0) // all of them
})

// Good is a row of goods.
type Good struct {
	ID   int `gorm:"primaryKey"`
	Name string
}

var withGorm = sqltest.Migrated("models 1", func(ctx context.Context, db *sqltest.Database) error {
	g, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: db.DB.DB}))
	if err != nil {
		return err
	}
	if err := g.WithContext(ctx).AutoMigrate(&Good{}); err != nil {
		return err
	}
	return g.WithContext(ctx).Create([]Good{{1, "tea"}, {2, "milk"}}).Error
})

func TestAServiceWithGorm(t *testing.T) {
	t.Parallel()
	for range 2 { // the second one is a copy that does not have the row of the first
		db := withGorm.Postgres(t)
		g, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: db.DB.DB}))
		if err != nil {
			t.Fatal(err)
		}
		var goods []Good
		if err := g.WithContext(t.Context()).Order("id").Find(&goods).Error; err != nil || len(goods) != 2 || goods[0].Name != "tea" {
			t.Errorf("%v, %v", goods, err)
		}
		if err := g.WithContext(t.Context()).Create(&Good{3, "salt"}).Error; err != nil {
			t.Error(err)
		}
	}
}

func TestAServiceWithAPoolOfPgx(t *testing.T) {
	t.Parallel()
	for name, template := range map[string]*sqltest.Template{"plain SQL": plain, "golang-migrate": withMigrate, "goose": withGoose, "atlas": withAtlas} {
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
