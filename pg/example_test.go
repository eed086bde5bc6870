package pg_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/pg"
)

// A Locker from a connection string. It connects when the first lock is asked for.
func ExampleNew() {
	if err := reindex(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func reindex(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn, pg.WithSessionTTL(10*time.Second), pg.WithOwner("reindex"))
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "reindex", func(ctx context.Context) error {
		log.Print("reindexing")
		return context.Cause(ctx) // nil while the lock is held
	})
}

// A Locker that connects like a pool. It takes no connection from the pool, so a pool of size 1 works.
func ExampleFromPool() {
	if err := closeDay(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func closeDay(ctx context.Context, dsn string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()

	locker, err := pg.FromPool(pool)
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "close the day", func(ctx context.Context) error {
		_, err := pool.Exec(ctx, "UPDATE days SET closed = true WHERE day < current_date")
		return err // ctx ends if the lock is lost
	})
}

// A lock that lasts as long as a transaction. It needs no connection of its own, and works behind a transaction pooler.
func ExampleLockTx() {
	if err := ship(context.Background(), os.Getenv("DATABASE_URL"), "17"); err != nil {
		log.Fatal(err)
	}
}

func ship(ctx context.Context, dsn, order string) error {
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()

	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := pg.LockTx(ctx, tx, "orders/"+order); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "UPDATE orders SET shipped_at = now() WHERE id = $1 AND shipped_at IS NULL", order)
		return err // the lock ends with the commit
	})
}

// The same for a *sql.Tx, without waiting.
func ExampleTryLockTx() {
	if err := shipIfFree(context.Background(), os.Getenv("DATABASE_URL"), "17"); err != nil {
		log.Fatal(err)
	}
}

func shipIfFree(ctx context.Context, dsn, order string) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()

	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit

	err = pg.TryLockTx(ctx, pg.SQLTx(tx), "orders/"+order)
	if errors.Is(err, sqllock.ErrHeld) {
		return nil // another client ships it
	}
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE orders SET shipped_at = now() WHERE id = $1", order); err != nil {
		return err
	}
	return tx.Commit()
}

// Readers hold the lock at the same time. A writer holds it alone.
func ExampleWithShared() {
	if err := readCatalogue(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func readCatalogue(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "catalogue", func(ctx context.Context) error {
		log.Print("reading")
		return context.Cause(ctx) // nil while the share is held
	}, pg.WithShared())
}

// The lock that another program acquires with pg_advisory_lock(4711). The name is for people.
func ExampleWithKey() {
	if err := importPrices(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func importPrices(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	ran, err := sqllock.TryDo(ctx, locker, "import of prices", func(ctx context.Context) error {
		log.Print("importing")
		return context.Cause(ctx) // nil while the lock is held
	}, pg.WithKey(4711))
	if err == nil && !ran {
		log.Print("the other program imports")
	}
	return err
}

// The key of a name never changes, so a program in any language may acquire the same lock:
// SELECT pg_advisory_lock(6384731323520189798).
func ExampleKey() {
	fmt.Println(pg.Key("orders/17"))
	// Output: 6384731323520189798
}

// A hook receives the events of the Locker's locks. It must be fast.
func ExampleWithHook() {
	locker, err := pg.New(os.Getenv("DATABASE_URL"), pg.WithHook(func(_ context.Context, e sqllock.Event) {
		switch e.Kind {
		case event.Lost:
			log.Printf("%s was lost after %s: %v", e.Name, e.Took, e.Err)
		case event.RenewalFailed:
			log.Printf("a heartbeat for %d locks failed: %v", e.Locks, e.Err)
		}
	}))
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close()
}

// How to find the holder of a lock, and to end a holder that hangs.
func ExampleLocker_Terminate() {
	if err := endHanging(context.Background(), os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func endHanging(ctx context.Context, dsn string) error {
	locker, err := pg.New(dsn)
	if err != nil {
		return err
	}
	defer locker.Close()

	info, err := locker.Inspect(ctx, "reindex")
	if err != nil || !info.Held {
		return err
	}
	log.Printf("held by %s", info.Holder)

	holder, ended, err := locker.Terminate(ctx, "reindex")
	if err == nil && ended {
		log.Printf("ended session %d, with every lock on it", holder.Session)
	}
	return err
}
