package leasetable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// guarded is a transaction of any supported kind.
type guarded struct {
	leasetable.Tx
	exec     func(query string) error
	commit   func() error
	rollback func()
}

// onEveryTx runs a test with each kind of transaction, on every database.
func onEveryTx(t *testing.T, test func(t *testing.T, db *sqltest.Database, begin func(t *testing.T) guarded)) {
	t.Helper()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		kinds := map[string]func(*testing.T) guarded{
			"sql": func(t *testing.T) guarded { t.Helper(); return beginSQL(t, db) },
			"sqlx": func(t *testing.T) guarded {
				t.Helper()
				tx, err := db.BeginTxx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = tx.Rollback() })
				exec := func(query string) error { _, err := tx.ExecContext(t.Context(), query); return err }
				return guarded{leasetable.SQLTx(tx), exec, tx.Commit, func() { _ = tx.Rollback() }}
			},
		}
		if db.Engine == sqltest.EnginePostgres {
			kinds["pgx"] = func(t *testing.T) guarded { t.Helper(); return beginPgx(t, db) }
		}
		run(t, db, "CREATE TABLE written (n INT NOT NULL)")
		for kind, begin := range kinds {
			t.Run(kind, func(t *testing.T) { test(t, db, begin) })
		}
	})
}

func beginSQL(t *testing.T, db *sqltest.Database) guarded {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	exec := func(query string) error { _, err := tx.ExecContext(t.Context(), query); return err }
	return guarded{leasetable.SQLTx(tx), exec, tx.Commit, func() { _ = tx.Rollback() }}
}

func beginPgx(t *testing.T, db *sqltest.Database) guarded {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec := func(query string) error { _, err := tx.Exec(t.Context(), query); return err }
	return guarded{
		leasetable.PgxTx(tx), exec,
		func() error { return tx.Commit(t.Context()) }, func() { _ = tx.Rollback(t.Context()) },
	}
}

const write = "INSERT INTO written (n) VALUES (1)"

// expireLease deletes the lease that holds a name, like a contender that finds it expired.
func expireLease(t *testing.T, db *sqltest.Database, name string) {
	t.Helper()
	run(t, db, "DELETE FROM sqllock_lease WHERE id = (SELECT lease_id FROM sqllock_lock WHERE name = ?)", []byte(name))
}

func TestAStaleHolderWritesNothing(t *testing.T) {
	t.Parallel()
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		before := count(t, db, "SELECT count(*) FROM written")
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		stale := take(t, a, t.Name())
		expireLease(t, db, t.Name())
		fresh := take(t, b, t.Name())
		if stale.Context().Err() != nil {
			t.Fatal("the stale holder knows that it is stale: the test proves nothing")
		}
		tx := begin(t)
		if err := stale.Guard(t.Context(), tx.Tx); !errors.Is(err, sqllock.ErrLost) {
			t.Fatalf("Guard of a stale holder: %v", err)
		}
		tx.rollback()
		if err := stale.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Verify of a stale holder: %v", err)
		}
		if err := context.Cause(stale.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the context of a stale holder after Verify: %v", err)
		}

		tx = begin(t)
		if err := fresh.Guard(t.Context(), tx.Tx); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(tx.exec(write), tx.commit()); err != nil {
			t.Fatal(err)
		}
		mustVerify(t, fresh)
		release(t, fresh)
		if err := fresh.Guard(t.Context(), begin(t).Tx); !errors.Is(err, sqllock.ErrReleased) {
			t.Errorf("Guard after Release: %v", err)
		}
		if n := count(t, db, "SELECT count(*) FROM written") - before; n != 1 {
			t.Errorf("%d rows were written", n)
		}
	})
}

// A takeover from a dead holder succeeds as soon as the transaction that the holder guarded has ended, and not sooner.
// The transaction delays no renewal. I13, I14.
func TestATakeoverWaitsForAGuardedTransaction(t *testing.T) {
	t.Parallel()
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		if db.Engine == sqltest.EngineSQLite {
			t.Skip("readers of a SQLite file pin nothing: see the test of a transaction that began before")
		}
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		first := take(t, a, t.Name())
		tx := begin(t)
		if err := first.Guard(t.Context(), tx.Tx); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lease SET renewals = renewals + 1") // it waits for nothing
		expireLease(t, db, t.Name())
		taken := make(chan *leasetable.Lease, 1)
		go func() {
			lock, err := b.Acquire(context.Background(), t.Name())
			if err != nil {
				t.Error(err)
			}
			taken <- lock
		}()
		eventually(t, func() bool { return waitsForRow(t, db) })
		if err := tx.exec(write); err != nil {
			t.Fatal(err)
		}
		if len(taken) > 0 {
			t.Fatal("the name was taken over while a transaction was guarded")
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		if lock := <-taken; lock != nil && lock.Token() <= first.Token() {
			t.Error("the token did not rise")
		}
	})
}

// The snapshot of the transaction is older than the takeover. I13.
func TestATransactionThatBeganBeforeTheTakeoverWritesNothing(t *testing.T) {
	t.Parallel()
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		before := count(t, db, "SELECT count(*) FROM written")
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		stale := take(t, a, t.Name())
		tx := begin(t)
		if err := tx.exec("SELECT count(*) FROM sqllock_lock"); err != nil {
			t.Fatal(err)
		}
		if db.Engine == sqltest.EngineSQLite {
			if err := stale.Guard(t.Context(), tx.Tx); err != nil { // the snapshot is still valid
				t.Fatal(err)
			}
		}
		expireLease(t, db, t.Name())
		take(t, b, t.Name())
		err := stale.Guard(t.Context(), tx.Tx)
		if err == nil {
			err = errors.Join(tx.exec(write), tx.commit())
		}
		if err == nil {
			t.Error("a stale holder wrote")
		}
		tx.rollback()
		if n := count(t, db, "SELECT count(*) FROM written") - before; n != 0 {
			t.Errorf("%d rows were written", n)
		}
	})
}

// The lock of the row is younger than the savepoint. MySQL and MariaDB keep such a lock if the transaction had used a table
// before. The comment of Guard promises less. I13.
func TestARollbackToAnOlderSavepointEndsAGuard(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		first := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "a")
		tx := beginSQL(t, db)
		err := errors.Join(tx.exec("SAVEPOINT s"), first.Guard(t.Context(), tx.Tx), tx.exec("ROLLBACK TO SAVEPOINT s"))
		if err != nil {
			t.Fatal(err)
		}
		expireLease(t, db, "a")
		take(t, newLocker(t, db.DB), "a") // it waits for nothing
		if err := first.Guard(t.Context(), tx.Tx); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Guard after a takeover: %v", err)
		}
	})
}

// The longest possible name has no next name that begins with it. I14.
func TestATryDoesNotWaitForAGuardedTransaction(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		holder, l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		longest := strings.Repeat("z", 1024)
		names := []string{"a", "b", "b\x00", "c", longest[1:], longest}
		for _, name := range names {
			release(t, take(t, holder, name))
		}
		for _, guarded := range names {
			lease := take(t, holder, guarded)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := lease.Guard(t.Context(), leasetable.SQLTx(tx)); err != nil {
				t.Fatal(err)
			}
			withoutWaiting(t, db, func() {
				for _, name := range names {
					lock, err := l.TryAcquire(t.Context(), name)
					if name == guarded && !errors.Is(err, sqllock.ErrHeld) || name != guarded && err != nil {
						t.Errorf("%.3q, with %.3q guarded: %v", name, guarded, err)
					}
					if err == nil {
						release(t, lock)
					}
				}
			})
			if err := tx.Rollback(); err != nil {
				t.Error(err)
			}
			release(t, lease)
		}
	})
}

// The table says that another client holds the lock, but the holder does not know that yet. A difference in the lease
// or in the token alone is enough. I21.
func TestAHolderDoesNothingWithALockThatIsNotItsOwn(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "other")
		guard := func(lease *leasetable.Lease) error {
			tx, err := db.BeginTxx(t.Context(), nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }() // it is not committed
			return lease.Guard(t.Context(), leasetable.SQLTx(tx))
		}
		end := func(lease *leasetable.Lease) error { return lease.Release(t.Context()) }
		for what, test := range map[string]struct {
			opts []sqllock.Option
			do   func(*leasetable.Lease) error
		}{
			"guard":            {do: guard},
			"guard a permit":   {[]sqllock.Option{leasetable.WithShared()}, guard},
			"release":          {do: end},
			"release a permit": {[]sqllock.Option{leasetable.WithShared()}, end},
			"release later":    {[]sqllock.Option{leasetable.WithHoldAtLeast(time.Minute)}, end},
			"extend":           {do: func(lease *leasetable.Lease) error { return lease.Extend(t.Context(), 10*time.Hour) }},
			"note":             {do: func(lease *leasetable.Lease) error { return lease.SetMetadata(t.Context(), "new") }},
			"export": {do: func(lease *leasetable.Lease) error {
				_, err := lease.Export(t.Context(), time.Hour)
				return err
			}},
		} {
			for change, arg := range map[string]any{"token = ?": 7, "lease_id = ?": leaseOf(t, db, "other")} {
				name := what + change
				lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), name, test.opts...)
				for _, table := range []string{"sqllock_lock", "sqllock_permit"} {
					run(t, db, "UPDATE "+table+" SET "+change+" WHERE name = ?", arg, []byte(name))
				}
				if err := test.do(lease); !errors.Is(err, sqllock.ErrLost) {
					t.Errorf("%s, with another %s: %v", what, change, err)
				}
			}
		}
	})
}

// The session of a guard is the application's. I13.
func TestAGuardWorksWithTheCharacterSetOfAnySession(t *testing.T) {
	t.Parallel()
	onMySQL(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		leases := []*leasetable.Lease{take(t, l, "x"), take(t, l, "y", leasetable.WithShared())}
		var sets []string
		if err := db.SelectContext(t.Context(), &sets, "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS"); err != nil {
			t.Fatal(err)
		}
		conn, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, set := range sets {
			if _, err := conn.ExecContext(t.Context(), "SET SESSION character_set_connection = "+set); err != nil {
				t.Fatal(err)
			}
			for _, lease := range leases {
				tx, err := conn.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Rollback()); err != nil {
					t.Errorf("with %s: %v", set, err)
				}
			}
		}
	})
}
