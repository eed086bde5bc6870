package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"log"
	"os"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/schema"
)

// A program creates the tables at its start. Any number of processes may do so at the same time.
func ExampleApply() {
	if err := createTables(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func createTables(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	return schema.Apply(ctx, db, schema.Postgres, schema.Tables{})
}

// A program that may not create tables checks them at its start. The error says what differs and how to repair it.
func ExampleCheck() {
	if err := checkTables(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func checkTables(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	err = schema.Check(ctx, db, schema.Postgres, schema.Tables{Schema: "locks"})
	if err != nil && !errors.Is(err, sqllock.ErrSchema) {
		log.Print("the tables could not be checked, which says nothing about them")
	}
	return err
}

// The definition as SQL, with a prefix of your own, for a migration written by hand.
func ExamplePrint() {
	if err := schema.Print(os.Stdout, schema.MySQL, schema.Tables{Prefix: "jobs_"}); err != nil {
		log.Fatal(err)
	}
}

// The files of one dialect, for a migration tool that reads an fs.FS.
func ExampleFiles() {
	files, err := fs.Sub(schema.Files, "sql/postgres")
	if err != nil {
		log.Fatal(err)
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range names {
		log.Print(name)
	}
}
