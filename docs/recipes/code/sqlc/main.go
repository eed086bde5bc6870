// Command report makes a report on one of many machines, with sqlc and pgxpool.
package main

import (
	"context"
	_ "embed"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/docs/recipes/code/sqlc/db" // what sqlc has generated for you
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

//go:embed schema.sql
var schemaSQL string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err == nil {
		err = run(ctx, pool)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	leases, err := leasetable.FromConnector(pg.Connector(pool)) // one per process; it takes no connection from the pool
	if err != nil {
		return err
	}
	defer leases.Close()

	return publish(ctx, leases, pool, func(context.Context) (string, error) { return "all is well", nil })
}

// migrate lets one machine migrate at a time. The others wait, and find it done. A session lock needs no tables.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	sessions, err := pg.FromPool(pool)
	if err != nil {
		return err
	}
	defer sessions.Close()
	sqlDB := stdlib.OpenDBFromPool(pool)
	defer sqlDB.Close()

	return sqllock.Do(ctx, sessions, "migrations", func(ctx context.Context) error {
		if err := schema.Apply(ctx, sqlDB, schema.Postgres, schema.Tables{}); err != nil { // the tables of leases
			return err
		}
		_, err := pool.Exec(ctx, schemaSQL)
		return err
	})
}

// publish makes the report while it holds the lock, and writes it in a guarded transaction.
func publish(ctx context.Context, leases *leasetable.Locker, pool *pgxpool.Pool, render func(context.Context) (string, error)) error {
	return sqllock.DoWith(ctx, leases, "report", func(ctx context.Context, lease *leasetable.Lease) error {
		text, err := render(ctx)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := lease.Guard(ctx, leasetable.PgxTx(tx)); err != nil {
				return err
			}
			return db.New(tx).SaveReport(ctx, text)
		})
	})
}
