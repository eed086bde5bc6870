package pg_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// waitInTx locks in another goroutine, and returns when the wait is in the server's queue.
func waitInTx(t *testing.T, db *sqltest.Database, name string, lock func() error) <-chan error {
	t.Helper()
	before := waitersFor(t, db, name)
	out := make(chan error, 1)
	go func() { out <- lock() }()
	eventually(t, "the wait is in the server's queue", func() bool { return waitersFor(t, db, name) > before })
	return out
}

func sqlState(err error) string {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func TestAWaitInATransactionEndsWhenTheHolderCommits(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		holder, waiter := begin(t), begin(t)
		mustLockTx(t, holder, "a")
		ctx, cancel := bounded(t)
		defer cancel()
		waiting := waitInTx(t, db, "a", func() error { return pg.LockTx(ctx, waiter, "a") })
		session := waitFor(ctx, t, db, newLocker(t, db), "a")
		if err := holder.commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		if len(session) > 0 {
			t.Fatal("a session took the lock while a transaction had it")
		}
		if err := waiter.commit(); err != nil {
			t.Fatal(err)
		}
		out := <-session
		if out.err != nil {
			t.Fatal(out.err)
		}
		mustRelease(t, out.lock)
	})
}

func TestAWaitThatIsGivenUpEndsItsTransaction(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		holder, waiter := begin(t), begin(t)
		mustLockTx(t, holder, "a")
		mustLockTx(t, waiter, "b")
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		waiting := waitInTx(t, db, "a", func() error { return pg.LockTx(ctx, waiter, "a") })
		cancel(gone)
		if err := <-waiting; !errors.Is(err, gone) || !errors.Is(err, context.Canceled) {
			t.Errorf("LockTx = %v; want the cause, and what the driver says", err)
		}
		if err := waiter.exec("SELECT 1"); err == nil {
			t.Error("the transaction goes on")
		}
		eventually(t, "the transaction's locks are free", func() bool { return locksOn(t, db) == 1 })
		mustBeHeldByOthers(t, begin(t), "a")
	})
}

func TestADeadContextCostsTheTransactionNothing(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		gone := errors.New("the caller has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		for name, lock := range everyLockTx {
			if err := lock(ctx, tx, "a"); !errors.Is(err, gone) {
				t.Errorf("%s = %v", name, err)
			}
		}
		tx.must(t, "SELECT 1")
		if n := locksOn(t, db); n != 0 {
			t.Errorf("%d locks are held", n)
		}
	})
}

func TestALockTimeoutAndASavepointKeepTheTransaction(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, _ *sqltest.Database, begin func(*testing.T) transaction) {
		holder, waiter := begin(t), begin(t)
		mustLockTx(t, holder, "a")
		mustLockTx(t, waiter, "before")
		waiter.must(t, "SET LOCAL lock_timeout = '20ms'")
		waiter.must(t, "SAVEPOINT here")
		err := pg.LockTx(t.Context(), waiter, "a")
		var held *sqllock.HeldError
		if !errors.Is(err, sqllock.ErrHeld) || !errors.As(err, &held) || sqlState(err) != "55P03" {
			t.Fatalf("LockTx past the lock_timeout: %v", err)
		}
		mustBeHeldByOthers(t, holder, "before")
		waiter.must(t, "ROLLBACK TO here")
		mustBeHeldByOthers(t, holder, "before")
		if err := holder.commit(); err != nil {
			t.Fatal(err)
		}
		mustLockTx(t, waiter, "a")
	})
}

func TestOfTwoTransactionsThatGoOnFromAShareOneIsEnded(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	one, two := begin(t, db.DSN), begin(t, db.DSN)
	ctx, cancel := bounded(t)
	defer cancel()
	for _, tx := range []transaction{one, two} {
		tx.must(t, "SET LOCAL deadlock_timeout = '50ms'")
		if err := pg.LockTx(ctx, tx, "a", pg.WithShared()); err != nil {
			t.Fatal(err)
		}
	}
	upgrade := func(tx transaction) <-chan error {
		out := make(chan error, 1)
		go func() {
			err := pg.LockTx(ctx, tx, "a")
			if err != nil {
				_ = tx.Rollback(ctx)
			}
			out <- err
		}()
		return out
	}
	first, second := upgrade(one), upgrade(two)
	errs := []string{sqlState(<-first), sqlState(<-second)}
	if (errs[0] == "40P01") == (errs[1] == "40P01") || errs[0]+errs[1] != "40P01" {
		t.Errorf("the errors are %q; want one deadlock", errs)
	}
}

// The statement that waits also takes the snapshot.
func TestOnlyReadCommittedSeesWhatThePreviousHolderCommitted(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	for level, fresh := range map[pgx.TxIsoLevel]bool{pgx.ReadCommitted: true, pgx.RepeatableRead: false, pgx.Serializable: false} {
		t.Run(string(level), func(t *testing.T) {
			t.Parallel()
			name := string(level)
			table := pgx.Identifier{name}.Sanitize()
			statement(t, db, "CREATE TABLE "+table+" (n int)")
			holder, waiter := begin(t, db.DSN), begin(t, db.DSN, pgx.TxOptions{IsoLevel: level})
			mustLockTx(t, holder, name)
			ctx, cancel := bounded(t)
			defer cancel()
			waiting := waitInTx(t, db, name, func() error { return pg.LockTx(ctx, waiter, name) })
			holder.must(t, "INSERT INTO "+table+" VALUES (1)")
			if err := holder.commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-waiting; err != nil {
				t.Fatal(err)
			}
			if n := rowsIn(t, waiter, table); (n == 1) != fresh {
				t.Errorf("the next holder sees %d rows", n)
			}
		})
	}
}

func TestALockTakenBeforeTheTransactionSeesWhatThePreviousHolderCommitted(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	statement(t, db, "CREATE TABLE things (n int)")
	holder := begin(t, db.DSN)
	mustLockTx(t, holder, "a")
	ctx, cancel := bounded(t)
	defer cancel()
	waiting := waitFor(ctx, t, db, newLocker(t, db), "a")
	holder.must(t, "INSERT INTO things VALUES (1)")
	if err := holder.commit(); err != nil {
		t.Fatal(err)
	}
	out := <-waiting
	if out.err != nil {
		t.Fatal(out.err)
	}
	if n := rowsIn(t, begin(t, db.DSN, pgx.TxOptions{IsoLevel: pgx.Serializable}), "things"); n != 1 {
		t.Errorf("the next holder sees %d rows", n)
	}
	mustRelease(t, out.lock)
}

func rowsIn(t *testing.T, tx pg.Tx, table string) (n int) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
