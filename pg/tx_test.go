package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// transaction is a transaction of a test, of any driver. It is rolled back at the end.
type transaction struct {
	pg.Tx
	commit func() error
	exec   func(query string) error
}

var drivers = map[string]func(*testing.T, *sqltest.Database) transaction{
	"pgx":          func(t *testing.T, db *sqltest.Database) transaction { t.Helper(); return begin(t, db.DSN) },
	"a pgxpool":    beginInPool,
	"database/sql": beginSQL,
	"sqlx":         beginSQLX,
}

func onEveryDriver(t *testing.T, test func(*testing.T, *sqltest.Database, func(*testing.T) transaction)) {
	t.Helper()
	for name, begin := range drivers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			test(t, db, func(t *testing.T) transaction { t.Helper(); return begin(t, db) })
		})
	}
}

// begin opens a connection and begins a transaction on it.
func begin(t *testing.T, dsn string, options ...pgx.TxOptions) transaction {
	t.Helper()
	conn := connect(t, dsn)
	tx, err := conn.BeginTx(t.Context(), append(options, pgx.TxOptions{})[0])
	return ofPgx(t, tx, err)
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close(context.Background())
		<-conn.PgConn().CleanupDone()
	})
	return conn
}

func beginInPool(t *testing.T, db *sqltest.Database) transaction {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	tx, err := pool.Begin(t.Context())
	return ofPgx(t, tx, err)
}

func ofPgx(t *testing.T, tx pgx.Tx, err error) transaction {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return transaction{
		Tx:     tx,
		commit: func() error { return tx.Commit(context.Background()) },
		exec: func(query string) error {
			_, err := tx.Exec(context.Background(), query)
			return err
		},
	}
}

func beginSQL(t *testing.T, db *sqltest.Database) transaction {
	t.Helper()
	tx := beginTx(t, db)
	return ofSQL(tx, pg.SQLTx(tx.Tx))
}

func beginSQLX(t *testing.T, db *sqltest.Database) transaction {
	t.Helper()
	tx := beginTx(t, db)
	return ofSQL(tx, pg.SQLTx(tx))
}

func beginTx(t *testing.T, db *sqltest.Database) *sqlx.Tx {
	t.Helper()
	tx, err := db.BeginTxx(context.Background(), nil) //nolint:usetesting // it ends with the test
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func ofSQL(tx *sqlx.Tx, of pg.Tx) transaction {
	return transaction{
		Tx:     of,
		commit: tx.Commit,
		exec: func(query string) error {
			_, err := tx.Exec(query)
			return err
		},
	}
}

func (tx transaction) must(t *testing.T, query string) {
	t.Helper()
	if err := tx.exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func mustLockTx(t *testing.T, tx pg.Tx, name string) {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	if err := pg.LockTx(ctx, tx, name); err != nil {
		t.Fatal(err)
	}
}

// mustBeHeldByOthers fails to acquire a lock, and checks that tx is still usable.
func mustBeHeldByOthers(t *testing.T, tx transaction, name string) {
	t.Helper()
	err := pg.TryLockTx(t.Context(), tx, name)
	var held *sqllock.HeldError
	var op *sqllock.OpError
	if !errors.Is(err, sqllock.ErrHeld) || !errors.As(err, &held) || held.Name != name || !errors.As(err, &op) || op.Op != "acquire" {
		t.Fatalf("TryLockTx of a held lock: %v", err)
	}
	tx.must(t, "SELECT 1")
}

func TestATransactionLockEndsWithItsTransaction(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(*testing.T, *sqltest.Database, transaction) error{
		"commit": func(_ *testing.T, _ *sqltest.Database, tx transaction) error { return tx.commit() },
		"rollback": func(t *testing.T, _ *sqltest.Database, tx transaction) error {
			t.Helper()
			return tx.Rollback(t.Context())
		},
		"the connection's end": func(t *testing.T, db *sqltest.Database, _ transaction) error {
			t.Helper()
			terminate(t, db, "a")
			return nil
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
				for call, take := range map[string]lockTx{"LockTx": pg.LockTx, "TryLockTx": pg.TryLockTx} {
					tx, other, l := begin(t), begin(t), newLocker(t, db)
					if err := take(t.Context(), tx, "a"); err != nil {
						t.Fatalf("%s: %v", call, err)
					}
					if err := take(t.Context(), tx, "a"); err != nil {
						t.Fatalf("%s, again: %v", call, err)
					}
					mustBeHeld(t, l, "a")
					mustBeHeldByOthers(t, other, "a")
					mustLockTx(t, other, "b")
					if err := end(t, db, tx); err != nil {
						t.Fatal(err)
					}
					eventually(t, "nobody holds the lock", func() bool { return ask[int](t, db, inLocks("count(*)", "true"), pg.Key("a")) == 0 })
					mustLockTx(t, other, "a")
					if err := other.commit(); err != nil {
						t.Fatal(err)
					}
					mustRelease(t, mustTry(t, l, "a"))
				}
			})
		})
	}
}

func TestARollbackToASavepointEndsTheTransactionLocksTakenSince(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, _ *sqltest.Database, begin func(*testing.T) transaction) {
		tx, other := begin(t), begin(t)
		mustLockTx(t, tx, "before")
		tx.must(t, "SAVEPOINT here")
		mustLockTx(t, tx, "since")
		mustBeHeldByOthers(t, other, "since")
		tx.must(t, "ROLLBACK TO here")
		mustBeHeldByOthers(t, other, "before")
		mustLockTx(t, other, "since")
		mustBeHeldByOthers(t, tx, "since")
	})
}

func TestASessionLockExcludesTransactions(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		lock := mustTry(t, newLocker(t, db), "a")
		mustBeHeldByOthers(t, tx, "a")
		if err := pg.TryLockTx(t.Context(), tx, "a", pg.WithShared()); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryLockTx WithShared of a lock that a session holds: %v", err)
		}
		mustRelease(t, lock)
		mustLockTx(t, tx, "a")
	})
}

func TestTransactionsShareALockThatNobodyHasAlone(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		one, two, three, writer, l := begin(t), begin(t), begin(t), begin(t), newLocker(t, db)
		if err := pg.LockTx(t.Context(), one, "a", pg.WithShared()); err != nil {
			t.Fatal(err)
		}
		if err := pg.TryLockTx(t.Context(), two, "a", pg.WithShared()); err != nil {
			t.Fatal(err)
		}
		mustBeHeldByOthers(t, writer, "a")
		mustBeHeld(t, l, "a")
		ctx, cancel := bounded(t)
		defer cancel()
		waiting := waitInTx(t, db, "a", func() error { return pg.LockTx(ctx, writer, "a") })
		if err := pg.TryLockTx(t.Context(), three, "a", pg.WithShared()); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryLockTx WithShared while somebody waits for the lock: %v", err)
		}
		for _, tx := range []transaction{one, two} {
			if len(waiting) > 0 {
				t.Fatal("the lock was taken while others had a share of it")
			}
			if err := tx.commit(); err != nil {
				t.Fatal(err)
			}
		}
		if err := <-waiting; err != nil {
			t.Fatal(err)
		}
		if err := pg.TryLockTx(t.Context(), three, "a", pg.WithShared()); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryLockTx WithShared of a held lock: %v", err)
		}
	})
}

func TestATransactionLockHasAnyName(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		tx, other := begin(t), begin(t)
		names := []string{"a", "A", "a ", "a\x00", "a\x00b", "\xff\xfe", "é", "e\u0301", "'; DROP TABLE x; --", "$1", strings.Repeat("n", 1024)}
		for i, name := range names {
			mustLockTx(t, tx, name)
			if n := locksOn(t, db); n != i+1 {
				t.Fatalf("%d locks are held after %q; want %d", n, name, i+1)
			}
			mustBeHeldByOthers(t, other, name)
		}
		for _, name := range []string{"", strings.Repeat("n", 1025)} {
			for _, lock := range everyLockTx {
				if err := lock(t.Context(), tx, name); !errors.Is(err, sqllock.ErrName) {
					t.Errorf("a name of %d bytes: %v", len(name), err)
				}
			}
		}
		tx.must(t, "SELECT 1")
	})
}

// lockTx is a function that acquires a lock in a transaction.
type lockTx = func(context.Context, pg.Tx, string, ...sqllock.Option) error

var everyLockTx = map[string]lockTx{
	"LockTx": pg.LockTx, "TryLockTx": pg.TryLockTx,
	"LockTx WithShared": sharing(pg.LockTx), "TryLockTx WithShared": sharing(pg.TryLockTx),
}

func sharing(f lockTx) lockTx {
	return func(ctx context.Context, tx pg.Tx, name string, opts ...sqllock.Option) error {
		return f(ctx, tx, name, append(opts, pg.WithShared())...)
	}
}

func TestATransactionLockIsOneRoundTripAlsoTheFirstTime(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(sqltest.Postgres(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	var sent atomic.Int32
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return countingConn{c, &sent}, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, lock := range everyLockTx {
		before := sent.Load()
		if err := lock(t.Context(), tx, name); err != nil {
			t.Fatal(err)
		}
		if n := sent.Load() - before; n != 1 {
			t.Errorf("%s sent %d times", name, n)
		}
	}
}

type countingConn struct {
	net.Conn
	sent *atomic.Int32
}

func (c countingConn) Write(p []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(p)
}

// Session locks are refused there: see TestAPoolerInBetweenIsRefused.
func TestATransactionLockWorksBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	statement(t, db, "CREATE TABLE counter (n int)")
	statement(t, db, "INSERT INTO counter VALUES (0)")
	dsn := startBouncer(t, db, "transaction")
	tx, other := begin(t, dsn), begin(t, dsn)
	mustLockTx(t, tx, "counter")
	mustBeHeldByOthers(t, other, "counter")
	mustBeHeld(t, newLocker(t, db), "counter")
	const clients, rounds = 6, 20
	done := make(chan error, clients)
	for range clients {
		conn := connect(t, dsn+"&default_query_exec_mode=exec") // for the test's own statements
		go func() {
			for range rounds {
				if err := increment(t.Context(), conn); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	eventually(t, "clients wait in the server's queue", func() bool { return waitersFor(t, db, "counter") > 1 })
	if err := tx.commit(); err != nil {
		t.Fatal(err)
	}
	for range clients {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if n := ask[int](t, db, "SELECT n FROM counter"); n != clients*rounds {
		t.Errorf("the counter is %d; want %d", n, clients*rounds)
	}
	if n := locksOn(t, db); n != 0 {
		t.Errorf("%d locks are held after the transactions", n)
	}
}

// increment reads and writes in two statements. Only the lock makes them atomic.
func increment(ctx context.Context, conn *pgx.Conn) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		if err := pg.LockTx(ctx, tx, "counter"); err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, "SELECT n FROM counter").Scan(&n); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, fmt.Sprintf("UPDATE counter SET n = %d", n+1))
		return err
	})
}
