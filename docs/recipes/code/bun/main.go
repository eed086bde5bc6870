// Command report makes a report on one of many machines, with bun.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// Report is a row that only the holder of the lock may write.
type Report struct {
	ID   int `bun:",pk"`
	Text string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err == nil {
		err = run(ctx, bun.NewDB(pool, pgdialect.New()), schema.Postgres)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, db *bun.DB, dialect schema.Dialect) error {
	if err := schema.Apply(ctx, db.DB, dialect, schema.Tables{}); err != nil { // the tables of leases
		return err
	}
	leases, err := leasetable.FromDB(db.DB) // one per process; it connects as bun does, and takes no connection from its pool
	if err != nil {
		return err
	}
	defer leases.Close()

	if err := migrate(ctx, leases, db); err != nil {
		return err
	}
	return publish(ctx, leases, db, func(context.Context) (string, error) { return "all is well", nil })
}

// migrate lets one machine migrate at a time. The others wait, and find it done.
func migrate(ctx context.Context, leases *leasetable.Locker, db *bun.DB) error {
	return sqllock.Do(ctx, leases, "migrations", func(ctx context.Context) error {
		_, err := db.NewCreateTable().Model((*Report)(nil)).IfNotExists().Exec(ctx) // or migrate.NewMigrator(db, …).Migrate(ctx)
		return err
	})
}

// publish makes the report while it holds the lock, and writes it in a guarded transaction.
func publish(ctx context.Context, leases *leasetable.Locker, db *bun.DB, render func(context.Context) (string, error)) error {
	return sqllock.DoWith(ctx, leases, "report", func(ctx context.Context, lease *leasetable.Lease) error {
		text, err := render(ctx)
		if err != nil {
			return err
		}
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if err := lease.Guard(ctx, leasetable.SQLTx(tx.Tx)); err != nil { // tx.Tx: bun would replace the placeholders
				return err
			}
			if _, err := tx.NewDelete().Model((*Report)(nil)).Where("id = 1").Exec(ctx); err != nil {
				return err
			}
			_, err := tx.NewInsert().Model(&Report{ID: 1, Text: text}).Exec(ctx)
			return err
		})
	})
}
