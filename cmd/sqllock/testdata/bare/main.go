// Command bare is what sqllock run is measured beside: it connects to SQLLOCK_DB, sends two
// statements around a command, and that is all.
package main

import (
	"context"
	"log"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5"
)

func main() {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, os.Getenv("SQLLOCK_DB"))
	check(err)
	_, err = conn.Exec(ctx, "SELECT 1")
	check(err)
	check(exec.Command(os.Args[1], os.Args[2:]...).Run())
	_, err = conn.Exec(ctx, "SELECT 1")
	check(err)
	check(conn.Close(ctx))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
