package examples_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Only one of N servers that deploy at once migrates; the others wait, and find it done.
func migrateOnce(ctx context.Context, db *sql.DB, migrate func(context.Context, *sql.DB) error) error {
	locker, err := pg.FromDB(db) // connects like db does, and leaves db's pool alone
	if err != nil {
		return err
	}
	defer locker.Close()

	return sqllock.Do(ctx, locker, "migrations", func(ctx context.Context) error {
		return migrate(ctx, db) // ctx ends if the lock is lost
	})
}

// A job that every machine starts, and one of them runs.
func nightly(ctx context.Context, locker sqllock.Locker, job func(context.Context) error) error {
	lock, err := locker.TryAcquire(ctx, "nightly report")
	if errors.Is(err, sqllock.ErrHeld) {
		return nil // another machine is at it; err says which
	}
	if err != nil {
		return err
	}
	return errors.Join(job(lock.Context()), lock.Release(ctx))
}

// A lease has a token that only ever rises: a store that refuses lower ones than it has seen
// is safe from a holder that was paused for too long.
func write(ctx context.Context, db *sqlx.DB, store func(token int64) error) error {
	locker, err := leasetable.New(db) // PostgreSQL, MySQL, MariaDB or SQLite
	if err != nil {
		return err
	}
	defer locker.Close()

	lock, err := locker.Acquire(ctx, "the store")
	if err != nil {
		return err
	}
	token := lock.(*leasetable.Lease).Token()
	return errors.Join(store(token), lock.Release(ctx))
}

// What a guarded transaction writes is written by the holder or not at all.
func guarded(ctx context.Context, db *sqlx.DB, lease *leasetable.Lease) error {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := lease.Guard(ctx, leasetable.SQLTx(tx)); err != nil { // leasetable.PgxTx(tx) for a pgx.Tx
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE reports SET done = 1"); err != nil {
		return err
	}
	return tx.Commit()
}

// Of all processes that campaign one schedules, and another one when that has stopped or died.
func elect(ctx context.Context, locker *leasetable.Locker, schedule func(ctx context.Context, token int64) error) error {
	elector, err := leasetable.NewElector(locker, "the scheduler")
	if err != nil {
		return err
	}
	return elector.Run(ctx, func(ctx context.Context, lease *leasetable.Lease) error {
		return schedule(ctx, lease.Token()) // ctx ends if another may lead
	})
}

// The others see who leads, now and whenever it changes.
func watch(ctx context.Context, locker *leasetable.Locker, told func(leader sqllock.Holder)) error {
	elector, err := leasetable.NewElector(locker, "the scheduler")
	if err != nil {
		return err
	}
	for leader, err := range elector.Observe(ctx, time.Second) {
		if err != nil && !sqllock.IsRetryable(err) {
			return err
		}
		told(leader) // the token is 0 if nobody leads, or it is not known
	}
	return context.Cause(ctx)
}

// A process that ends hands the lock to the one that follows it, and nobody else has it in between.
func handOver(ctx context.Context, lease *leasetable.Lease, send func(ticket string) error) error {
	if err := lease.SetMetadata(ctx, []byte("half done")); err != nil { // the next holder finds it
		return err
	}
	ticket, err := lease.Export(ctx, time.Minute) // it is free after that, unless somebody adopts it
	if err != nil {
		return err
	}
	return send(ticket)
}

// The one that follows, in another process, goes on with a higher token.
func goOn(ctx context.Context, locker *leasetable.Locker, ticket string, work func(context.Context) error) error {
	lease, err := locker.Adopt(ctx, ticket)
	if err != nil {
		return err
	}
	return errors.Join(work(lease.Context()), lease.Release(ctx))
}

// A holder that will stall for an hour, such as in a call that cannot be interrupted, makes sure of the lock before.
func stall(ctx context.Context, lease *leasetable.Lease, call func() error) error {
	if err := lease.Extend(ctx, time.Hour); err != nil {
		return err
	}
	return call()
}

// An order is shipped once at a time; the lock ends with the transaction.
func ship(ctx context.Context, tx pgx.Tx, order string) error {
	if err := pg.LockTx(ctx, tx, "orders/"+order); err != nil { // pg.SQLTx(tx) for a *sql.Tx
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE orders SET shipped = now() WHERE id = $1", order)
	return err
}

func TestOnARealDatabase(t *testing.T) {
	db := sqltest.Postgres(t) // a fresh database; also MySQL, MariaDB, SQLite

	var one int
	if err := db.Get(&one, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
}

func ExampleHeldError() {
	err := error(&sqllock.HeldError{Name: "x", Holder: sqllock.Holder{Owner: "nightly", Host: "web-1", PID: 4711, Token: 7}})
	var held *sqllock.HeldError
	if errors.As(err, &held) {
		fmt.Println(held.Holder.Host, held.Holder.PID)
	}
	fmt.Println(err)
	// Output:
	// web-1 4711
	// lock is held by nightly, on web-1, pid 4711, token 7
}
