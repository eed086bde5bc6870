// Command bare is the baseline for measuring sqllock run: it connects to SQLLOCK_DB and sends one statement before a
// command and one after it.
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
