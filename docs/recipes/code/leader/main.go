// Command leader elects one leader among the replicas of a deployment.
package main

import (
	"context"
	"database/sql"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock/leasetable"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err == nil {
		err = run(ctx, db, work)
	}
	if err != nil && ctx.Err() == nil { // not because of the signal
		log.Fatal(err)
	}
}

// run campaigns until ctx ends. Of all replicas, one at most is in lead.
func run(ctx context.Context, db *sql.DB, lead func(ctx context.Context, lease *leasetable.Lease) error) error {
	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()
	elector, err := leasetable.NewElector(leases, "the scheduler")
	if err != nil {
		return err
	}
	return elector.Run(ctx, lead) // calls lead again after a leadership that was lost
}

// work is what the leader does. ctx ends on SIGTERM, and when the leadership is lost. Then it must return soon.
func work(ctx context.Context, lease *leasetable.Lease) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			log.Printf("leading with token %d", lease.Token()) // pass the token to what the work changes
		}
	}
}
