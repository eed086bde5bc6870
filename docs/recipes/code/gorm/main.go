// Command report makes a report on one of many machines, with gorm.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

// Report is a row that only the holder of the lock may write.
type Report struct {
	ID   int `gorm:"primaryKey"`
	Text string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	db, err := gorm.Open(postgres.Open(os.Getenv("DATABASE_URL")))
	if err == nil {
		err = run(ctx, db)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, db *gorm.DB) error {
	pool, err := db.DB()
	if err != nil {
		return err
	}
	dialect, err := schema.DialectOf(db.Name()) // "postgres", "mysql" or "sqlite"
	if err != nil {
		return err
	}
	if err := schema.Apply(ctx, pool, dialect, schema.Tables{}); err != nil { // the tables of leases
		return err
	}
	leases, err := leasetable.FromDB(pool) // one per process; it connects as gorm does, and takes no connection from its pool
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
func migrate(ctx context.Context, leases *leasetable.Locker, db *gorm.DB) error {
	return sqllock.Do(ctx, leases, "migrations", func(ctx context.Context) error {
		return db.WithContext(ctx).AutoMigrate(&Report{})
	})
}

// publish makes the report while it holds the lock, and writes it in a guarded transaction.
func publish(ctx context.Context, leases *leasetable.Locker, db *gorm.DB, render func(context.Context) (string, error)) error {
	return sqllock.DoWith(ctx, leases, "report", func(ctx context.Context, lease *leasetable.Lease) error {
		text, err := render(ctx)
		if err != nil {
			return err
		}
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := guard(ctx, lease, tx); err != nil {
				return err
			}
			return tx.Save(&Report{ID: 1, Text: text}).Error
		})
	})
}

// guard makes sure that what tx writes is written by the holder of the lock, or not at all.
func guard(ctx context.Context, lease *leasetable.Lease, tx *gorm.DB) error {
	sqlTx, ok := tx.Statement.ConnPool.(gorm.Tx)
	if !ok {
		return errors.New("this is not a transaction")
	}
	return lease.Guard(ctx, leasetable.SQLTx(sqlTx))
}
