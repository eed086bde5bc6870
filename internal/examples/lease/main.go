// Command lease is the second program of docs/start.md.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

func main() {
	if err := run(context.Background(), os.Getenv("SQLLOCK_DB")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, url string) error {
	db, err := sql.Open("pgx", url)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema.Apply(ctx, db, schema.Postgres, schema.Tables{}); err != nil { // creates the tables that are missing
		return err
	}
	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()
	return sqllock.DoWith(ctx, leases, "hello", func(ctx context.Context, lease *leasetable.Lease) error {
		log.Printf("held, with token %d", lease.Token())
		_, err := db.ExecContext(ctx, "SELECT pg_sleep(5)") // the work; ctx ends when the lock is lost
		return err
	})
}
