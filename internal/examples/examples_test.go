package examples_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A migration at start-up. main calls start, which opens the one Locker of the process.
func start(ctx context.Context, db *sql.DB, migrate, serve func(context.Context) error) error {
	locker, err := pg.FromDB(db) // connects as db does, and takes no connection from its pool
	if err != nil {
		return err
	}
	defer locker.Close()

	if err := migrateOnce(ctx, locker, migrate); err != nil {
		return err
	}
	return serve(ctx)
}

// Of N servers that deploy at once one migrates. The others wait, and find it done.
func migrateOnce(ctx context.Context, locker sqllock.Locker, migrate func(context.Context) error) error {
	return sqllock.Do(ctx, locker, "migrations", migrate) // the context of migrate ends when ctx ends or the lock is lost
}

// A cron job that every machine starts and one machine runs. The others skip it.
func nightly(ctx context.Context, leases *leasetable.Locker, report func(context.Context) error) error {
	ran, err := sqllock.TryDo(ctx, leases, "nightly report", report, leasetable.WithHoldAtLeast(time.Minute))
	if err == nil && !ran {
		slog.InfoContext(ctx, "skipped: another machine makes the nightly report")
	}
	return err
}

// A job with a fencing token and a guarded transaction.
func publish(ctx context.Context, leases *leasetable.Locker, db *sql.DB, upload func(ctx context.Context, token int64) error) error {
	return sqllock.DoWith(ctx, leases, "the report", func(ctx context.Context, lease *leasetable.Lease) error {
		if err := upload(ctx, lease.Token()); err != nil { // the store refuses a lower token than it has seen
			return err
		}
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if err := lease.Guard(ctx, leasetable.SQLTx(tx)); err != nil { // leasetable.PgxTx(tx) for a pgx.Tx
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE reports SET published = 1"); err != nil {
			return err
		}
		return tx.Commit() // what the transaction wrote was written by the holder, or not at all
	})
}

// An indexer stores a Locker of any kind.
type indexer struct {
	locks sqllock.Locker // a *pg.Locker, a *mysql.Locker, or sqllock.AnyKind of a *leasetable.Locker
}

func (x *indexer) rebuild(ctx context.Context, index string, build func(context.Context) error) error {
	return sqllock.Do(ctx, x.locks, "index/"+index, build, sqllock.WithWait(10*time.Second))
}

// A generic function takes a Locker of any kind as it is, and build gets the lock with its own type.
func rebuildWith[L sqllock.Lock](ctx context.Context, locks sqllock.Acquirer[L], index string, build func(ctx context.Context, lock L) error) error {
	return sqllock.DoWith(ctx, locks, "index/"+index, build, sqllock.WithWait(10*time.Second))
}

// An order is shipped once at a time. The lock ends with the transaction.
func ship(ctx context.Context, tx pgx.Tx, order string) error {
	if err := pg.LockTx(ctx, tx, "orders/"+order); err != nil { // pg.SQLTx(tx) for a *sql.Tx
		return err
	}
	_, err := tx.Exec(ctx, "UPDATE orders SET shipped = now() WHERE id = $1", order)
	return err
}

// One leader among all processes that campaign. If it dies or loses the lease, another one follows.
func elect(ctx context.Context, leases *leasetable.Locker, lead func(ctx context.Context, lease *leasetable.Lease) error) error {
	elector, err := leasetable.NewElector(leases, "the scheduler")
	if err != nil {
		return err
	}
	return elector.Run(ctx, lead) // the context of lead ends when ctx ends or another process may lead
}

// The other processes see who leads, now and whenever it changes.
func watch(ctx context.Context, leases *leasetable.Locker, told func(leader sqllock.Holder)) error {
	elector, err := leasetable.NewElector(leases, "the scheduler")
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

// A process that ends hands its lock to the process that follows it. Nobody else has it in between.
func handOver(ctx context.Context, lease *leasetable.Lease, send func(ticket string) error) error {
	if err := lease.SetMetadata(ctx, "half done"); err != nil { // the next holder finds it
		return err
	}
	ticket, err := lease.Export(ctx, time.Minute) // the name is free after that, unless a process adopts the ticket
	if err != nil {
		return err
	}
	return send(ticket)
}

// The process that follows goes on with a higher token.
func goOn(ctx context.Context, leases *leasetable.Locker, ticket string, work func(context.Context) error) (err error) {
	lease, err := leases.Adopt(ctx, ticket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release(ctx)) }()

	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(lease.Context(), func() { cancel(context.Cause(lease.Context())) })()
	return work(working) // working ends when ctx ends or the lock is lost
}

// A holder that cannot renew for an hour, such as in a call that cannot be interrupted, extends the lock before.
func stall(ctx context.Context, lease *leasetable.Lease, call func() error) error {
	if err := lease.Extend(ctx, time.Hour); err != nil {
		return err
	}
	return call()
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
