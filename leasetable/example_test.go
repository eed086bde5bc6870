package leasetable_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/schema"
)

// A Locker from a DSN. The program imports the driver: here pgx's stdlib, otherwise github.com/go-sql-driver/mysql or
// modernc.org/sqlite.
func ExampleNew() {
	if err := sendInvoices(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func sendInvoices(ctx context.Context, dsn string) error {
	leases, err := leasetable.New(dsn, leasetable.WithTTL(30*time.Second), leasetable.WithOwner("invoices"))
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.DoWith(ctx, leases, "invoices", func(ctx context.Context, lease *leasetable.Lease) error {
		log.Printf("sending, with token %d", lease.Token())
		return context.Cause(ctx) // nil while the lease is held
	})
}

// A program that creates the tables at its start. Its Locker connects like its *sql.DB.
func ExampleFromDB() {
	if err := startUp(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func startUp(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := schema.Apply(ctx, db, schema.Postgres, schema.Tables{}); err != nil {
		return err
	}

	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()

	_, err = sqllock.TryDo(ctx, leases, "clean-up", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "DELETE FROM uploads WHERE expires_at < now()")
		return err // ctx ends if the lease is lost
	})
	return err
}

// A Locker that connects like a pgx pool, with its BeforeConnect hook. It takes no connection from the pool.
func ExampleFromConnector() {
	if err := leaseFromPool(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func leaseFromPool(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()

	leases, err := leasetable.FromConnector(pg.Connector(pool))
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.Do(ctx, leases, "clean-up", func(ctx context.Context) error {
		_, err := pool.Exec(ctx, "DELETE FROM uploads WHERE expires_at < now()")
		return err // ctx ends if the lease is lost
	})
}

// What a guarded transaction writes is committed only if the lease is held.
func ExampleLease_Guard() {
	if err := closeBooks(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func closeBooks(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	leases, err := leasetable.FromDB(db)
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.DoWith(ctx, leases, "the books", func(ctx context.Context, lease *leasetable.Lease) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after the commit

		if err := lease.Guard(ctx, leasetable.SQLTx(tx)); err != nil {
			return err // sqllock.ErrLost: another client holds the name
		}
		if _, err := tx.ExecContext(ctx, "UPDATE books SET closed = true WHERE year < 2026"); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// The same with a transaction of pgx.
func ExamplePgxTx() {
	if err := closeBooksByPool(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func closeBooksByPool(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()

	leases, err := leasetable.FromConnector(pg.Connector(pool))
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.DoWith(ctx, leases, "the books", func(ctx context.Context, lease *leasetable.Lease) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := lease.Guard(ctx, leasetable.PgxTx(tx)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE books SET closed = true WHERE year < 2026")
			return err
		})
	})
}

// One process of many leads until its context ends. If it dies or loses the lease, another one follows with a higher token.
func ExampleElector_Run() {
	if err := schedule(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func schedule(ctx context.Context, dsn string) error {
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	elector, err := leasetable.NewElector(leases, "the scheduler")
	if err != nil {
		return err
	}
	return elector.Run(ctx, func(ctx context.Context, lease *leasetable.Lease) error {
		log.Printf("leading, with token %d", lease.Token())
		<-ctx.Done() // ctx ends with the caller's, or when another process may lead
		return nil
	})
}

// The other processes learn who leads, at once and whenever that changes.
func ExampleElector_Observe() {
	if err := followLeader(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func followLeader(ctx context.Context, dsn string) error {
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	elector, err := leasetable.NewElector(leases, "the scheduler")
	if err != nil {
		return err
	}
	for leader, err := range elector.Observe(ctx, time.Second) {
		switch {
		case err != nil && !sqllock.IsRetryable(err):
			return err
		case err != nil:
			log.Printf("the leader is not known: %v", err)
		case leader.Token == 0:
			log.Print("nobody leads")
		default:
			log.Printf("%s leads, on %s", leader.Owner, leader.Host)
		}
	}
	return nil // ctx has ended
}

// A holder is about to stall for an hour, in a call that cannot be interrupted. First it extends the lease for that
// long.
func ExampleLease_Extend() {
	if err := backUp(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func backUp(ctx context.Context, dsn string) error {
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.DoWith(ctx, leases, "backup", func(ctx context.Context, lease *leasetable.Lease) error {
		if err := lease.Extend(ctx, time.Hour); err != nil {
			return err
		}
		log.Printf("the lease lasts for %s without a renewal", lease.Remaining())
		return nil
	})
}

// A process that ends hands its lease over to another process. Nobody else can acquire the name in between.
func ExampleLease_Export() {
	if err := handToNext(context.Background(), os.Getenv("DATABASE_URL"), "ticket.txt"); err != nil {
		log.Fatal(err)
	}
}

func handToNext(ctx context.Context, dsn, file string) error {
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	lease, err := leases.Acquire(ctx, "import", leasetable.WithMetadata("rows 1 to 1000 are done"))
	if err != nil {
		return err
	}
	ticket, err := lease.Export(ctx, time.Minute) // for one minute; then the name is free
	if err != nil {
		return errors.Join(err, lease.Release(ctx))
	}
	return os.WriteFile(file, []byte(ticket), 0o600)
}

// The other process adopts the lease, with the next token. It finds the metadata that the first process attached.
func ExampleLocker_Adopt() {
	if err := adoptImport(context.Background(), os.Getenv("DATABASE_URL"), "ticket.txt"); err != nil {
		log.Fatal(err)
	}
}

func adoptImport(ctx context.Context, dsn, file string) error {
	ticket, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	lease, err := leases.Adopt(ctx, string(ticket))
	if err != nil {
		return err
	}
	info, err := leases.Inspect(ctx, lease.Name())
	if err == nil {
		log.Printf("going on with token %d: %s", lease.Token(), info.Holder.Metadata)
	}
	return errors.Join(err, lease.Release(ctx))
}

// A semaphore: at most three holders of a permit at the same time, on all machines together.
func ExampleWithLimit() {
	if err := render(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func render(ctx context.Context, dsn string) error {
	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.Do(ctx, leases, "thumbnails", func(ctx context.Context) error {
		log.Print("rendering")
		return context.Cause(ctx) // nil while the permit is held
	}, leasetable.WithLimit(3))
}
