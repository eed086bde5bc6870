package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
)

// Every server migrates when it starts. One of them does the work, the others wait and find it done.
func ExampleDo() {
	if err := migrateAtStart(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func migrateAtStart(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	locker, err := pg.FromDB(db) // connects as db does, and takes no connection from its pool
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS reports (day date PRIMARY KEY, orders bigint)")
		return err // ctx ends if the lock is lost
	})
}

// Every machine starts the job at the same time. One of them runs it, the others skip it.
//
// The name stays taken for 55 minutes, so that a machine whose clock is late does not run the job again.
func ExampleTryDo() {
	if err := nightlyReport(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func nightlyReport(ctx context.Context, dsn string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	leases, err := leasetable.FromDB(db) // its tables: sqllock schema apply, or schema.Apply
	if err != nil {
		return err
	}
	defer leases.Close()

	ran, err := sqllock.TryDo(ctx, leases, "nightly report", func(ctx context.Context) error {
		_, err := db.ExecContext(ctx, "INSERT INTO reports SELECT current_date, count(*) FROM orders")
		return err // ctx ends if the lock is lost
	}, leasetable.WithHoldAtLeast(55*time.Minute))
	if err == nil && !ran {
		log.Print("another machine runs the report, or has run it")
	}
	return err
}

// The function gets the lease, whose token rises with every acquisition. The database that is written to compares
// tokens, so a holder that was paused for too long cannot change what a later holder has written.
func ExampleDoWith() {
	if err := countStock(context.Background(), os.Getenv("DATABASE_URL"), os.Getenv("WAREHOUSE_URL")); err != nil {
		log.Fatal(err)
	}
}

func countStock(ctx context.Context, dsn, warehouseDSN string) error {
	warehouse, err := sql.Open("pgx", warehouseDSN)
	if err != nil {
		return err
	}
	defer warehouse.Close()

	leases, err := leasetable.New(dsn)
	if err != nil {
		return err
	}
	defer leases.Close()

	return sqllock.DoWith(ctx, leases, "the stock", func(ctx context.Context, lease *leasetable.Lease) error {
		result, err := warehouse.ExecContext(ctx,
			"UPDATE stock SET counted_at = now(), token = $1 WHERE shelf = 'A' AND token <= $1", lease.Token())
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			err = errors.New("a later holder has written already")
		}
		return err
	})
}

// Two names are acquired together. Callers with overlapping names do not block each other for ever.
func ExampleAcquireAll() {
	if err := transfer(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func transfer(ctx context.Context, dsn string) (err error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	locker, err := pg.FromDB(db)
	if err != nil {
		return err
	}
	defer locker.Close()

	locks, err := sqllock.AcquireAll(ctx, locker, []string{"account/17", "account/42"})
	if err != nil {
		return err // and neither is held
	}
	defer func() { err = errors.Join(err, locks.Release(ctx)) }()

	// This context ends when either lock ends. It does not end with ctx.
	_, err = db.ExecContext(locks.Context(),
		"UPDATE accounts SET balance = balance + CASE id WHEN 17 THEN -100 ELSE 100 END WHERE id IN (17, 42)")
	return err
}

// A function that takes a sqllock.Locker works with every kind of lock. A session Locker is one as it is. AnyKind makes
// one of a Locker of leases.
func ExampleAnyKind() {
	if err := rebuild(context.Background(), os.Getenv("DATABASE_URL"), os.Getenv("LOCK_KIND") == "lease"); err != nil {
		log.Fatal(err)
	}
}

func rebuild(ctx context.Context, dsn string, byLease bool) error {
	if byLease {
		leases, err := leasetable.New(dsn)
		if err != nil {
			return err
		}
		defer leases.Close()
		return rebuildIndex(ctx, sqllock.AnyKind(leases))
	}
	sessions, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer sessions.Close()
	return rebuildIndex(ctx, sessions)
}

func rebuildIndex(ctx context.Context, locker sqllock.Locker) error {
	return sqllock.Do(ctx, locker, "search index", func(ctx context.Context) error {
		log.Print("rebuilding")
		return context.Cause(ctx) // nil while the lock is held
	})
}

// WithWait bounds the wait alone. The context of Do bounds the wait and the work together.
func ExampleWithWait() {
	if err := deploy(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func deploy(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	err = sqllock.Do(ctx, locker, "deployment", func(ctx context.Context) error {
		log.Print("deploying")
		return context.Cause(ctx) // nil while the lock is held
	}, sqllock.WithWait(30*time.Second))

	var held *sqllock.HeldError
	if errors.As(err, &held) {
		return fmt.Errorf("somebody else deploys: %s: %w", held.Holder, err)
	}
	return err
}

// Whatever ends a lock cancels its context, with a cause that says what it was.
func ExampleLock() {
	if err := consume(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func consume(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	lock, err := locker.Acquire(ctx, "consumer")
	if err != nil {
		return err
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			log.Print("consuming")
		case <-ctx.Done(): // Release works all the same
			return lock.Release(ctx)
		case <-lock.Context().Done(): // lost: somebody else may hold it now
			return errors.Join(context.Cause(lock.Context()), lock.Release(ctx))
		}
	}
}
