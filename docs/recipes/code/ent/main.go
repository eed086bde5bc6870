// Command report makes a report on one of many machines, with ent.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"

	entsql "entgo.io/ent/dialect/sql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/docs/recipes/code/ent/ent" // the client that ent has generated for you
	"github.com/sqllock/sqllock/docs/recipes/code/ent/ent/report"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err == nil {
		err = run(ctx, pool, schema.Postgres)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, pool *sql.DB, dialect schema.Dialect) error {
	if err := schema.Apply(ctx, pool, dialect, schema.Tables{}); err != nil { // the tables of leases
		return err
	}
	leases, err := leasetable.FromDB(pool) // one per process; it connects as ent does, and takes no connection from its pool
	if err != nil {
		return err
	}
	defer leases.Close()

	client := newClient(pool, dialect)
	if err := migrate(ctx, leases, client); err != nil {
		return err
	}
	return publish(ctx, leases, client, func(context.Context) (string, error) { return "all is well", nil })
}

func newClient(pool *sql.DB, dialect schema.Dialect) *ent.Client {
	name := string(dialect) // as ent calls it
	if dialect == schema.SQLite {
		name = "sqlite3"
	}
	return ent.NewClient(ent.Driver(entsql.OpenDB(name, pool)))
}

// migrate lets one machine migrate at a time. The others wait, and find it done.
func migrate(ctx context.Context, leases *leasetable.Locker, client *ent.Client) error {
	return sqllock.Do(ctx, leases, "migrations", func(ctx context.Context) error {
		return client.Schema.Create(ctx)
	})
}

// publish makes the report while it holds the lock, and writes it in a guarded transaction.
func publish(ctx context.Context, leases *leasetable.Locker, client *ent.Client, render func(context.Context) (string, error)) error {
	return sqllock.DoWith(ctx, leases, "report", func(ctx context.Context, lease *leasetable.Lease) error {
		text, err := render(ctx)
		if err != nil {
			return err
		}
		tx, err := client.Tx(ctx)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := lease.Guard(ctx, leasetable.SQLTx(tx)); err != nil { // the feature sql/execquery
			return err
		}
		if err := tx.Report.Create().SetID(1).SetText(text).OnConflictColumns(report.FieldID).UpdateNewValues().Exec(ctx); err != nil {
			return err
		}
		return tx.Commit()
	})
}
