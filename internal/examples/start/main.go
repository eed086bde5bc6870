// Command start is the first program of docs/start.md.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
)

func main() {
	// One for each process, not one for each lock. It logs locks that were lost, and waits during which
	// the database cannot be used.
	locker, err := pg.New(os.Getenv("SQLLOCK_DB"))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()

	err = sqllock.Do(context.Background(), locker, "hello", work)
	if err != nil {
		log.Print(err)
	}
}

// The context of work ends when the lock is lost. Pass it on to everything that work calls.
func work(ctx context.Context) error {
	log.Print("held")
	select {
	case <-time.After(10 * time.Second):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
