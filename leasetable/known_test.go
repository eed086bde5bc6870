package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// knowing are the databases on which a name can be acquired by its token.
var knowing = map[string]func(sqltest.TB) *sqltest.Database{"PostgreSQL": sqltest.Postgres, "MariaDB": sqltest.MariaDB}

// takeKnown acquires x, releases it, and acquires it again by its token.
func takeKnown(t *testing.T, l *leasetable.Locker, opts ...sqllock.Option) *leasetable.Lease {
	t.Helper()
	release(t, take(t, l, "x"))
	lease := take(t, l, "x", opts...)
	if leasetable.KnownToken(l, "x") != lease.Token() {
		t.Fatalf("it was taken with token %d, in another way", lease.Token())
	}
	return lease
}

func TestANameThatNobodyElseUsesIsTakenAndFreedByItsToken(t *testing.T) {
	t.Parallel()
	on(t, knowing, func(t *testing.T, db *sqltest.Database) {
		counted, statements := counting(t, db)
		l := newLocker(t, counted, leasetable.WithTTL(time.Hour))
		release(t, takeKnown(t, l))
		before := statements.n.Load()
		release(t, take(t, l, "x"))
		if n := statements.n.Load() - before; n != 2 {
			t.Errorf("it was taken and freed by %d statements", n)
		}
		next := take(t, newLocker(t, db.DB), "x")
		mustBeHeld(t, l, "x")
		release(t, next)
		if again := take(t, l, "x"); next.Token() != 4 || again.Token() != 5 {
			t.Errorf("the next tokens are %d and %d", next.Token(), again.Token())
		}
	})
}

func TestTheRowOfANameThatIsTakenAndFreedByItsTokenTellsWhen(t *testing.T) {
	t.Parallel()
	on(t, knowing, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		release(t, takeKnown(t, l))
		run(t, db, "UPDATE sqllock_lock SET acquired_at = '2000-01-01', released_at = '2000-01-01'")
		lease := take(t, l, "x")
		if count(t, db, "SELECT count(*) FROM sqllock_lock WHERE acquired_at > '2001-01-01' AND released_at IS NULL") != 1 {
			t.Error("the row tells something else of who has taken it")
		}
		release(t, lease)
		if count(t, db, "SELECT count(*) FROM sqllock_lock WHERE released_at > '2001-01-01'") != 1 {
			t.Error("the row tells something else of who has released it")
		}
	})
}

// A remembered token decides nothing: the row does.
func TestANameWhoseTokenIsKnownIsTakenOnlyIfItIsFree(t *testing.T) {
	t.Parallel()
	on(t, knowing, func(t *testing.T, db *sqltest.Database) {
		t.Run("handed over", func(t *testing.T) { //nolint:paralleltest // the subtests use the same name
			l := newLocker(t, db.DB)
			ticket, err := takeKnown(t, l).Export(t.Context(), time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			mustBeHeld(t, l, "x")
			lock, err := l.Adopt(t.Context(), ticket)
			if err != nil {
				t.Fatal(err)
			}
			release(t, lock)
		})
		t.Run("shared, after a failover", func(t *testing.T) { //nolint:paralleltest // the subtests use the same name
			l := newLocker(t, db.DB)
			before := takeKnown(t, l)
			release(t, before)
			shared := take(t, newLocker(t, db.DB), "x", leasetable.WithShared())
			run(t, db, fmt.Sprint("UPDATE sqllock_lock SET token = ", before.Token()))
			mustBeHeld(t, l, "x")
			release(t, shared)
		})
		t.Run("kept", func(t *testing.T) { //nolint:paralleltest // the subtests use the same name
			l := newLocker(t, db.DB)
			release(t, takeKnown(t, l, leasetable.WithHoldAtLeast(time.Hour)))
			mustBeHeld(t, l, "x")
		})
	})
}

// A release by token does not release a name of another holder either.
func TestANameWhoseTokenIsKnownIsFreedOnlyByItsHolder(t *testing.T) {
	t.Parallel()
	for name, opts := range durably {
		for _, change := range []string{"lease_id = name", "token = 7"} {
			t.Run(name+", "+change, func(t *testing.T) {
				t.Parallel()
				on(t, knowing, func(t *testing.T, db *sqltest.Database) {
					lease := takeKnown(t, newLocker(t, db.DB, opts...))
					run(t, db, "UPDATE sqllock_lock SET "+change)
					if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
						t.Errorf("Release = %v", err)
					}
					if n := count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL"); n != 1 {
						t.Error("it was freed")
					}
				})
			})
		}
	}
}

func TestAStatementByTokenWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, opts := range durably {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on(t, knowing, func(t *testing.T, db *sqltest.Database) {
				p, l := newLockerThrough(t, db, opts...)
				lease := takeKnown(t, l)
				p.loseAnswerTo(onWire(db, []byte("x")))
				if err := lease.Release(t.Context()); err != nil || p.answersLost() != 1 {
					t.Errorf("Release: %v; %d answers lost", err, p.answersLost())
				}
				if token := take(t, newLocker(t, db.DB), "x").Token(); token != 3 {
					t.Errorf("the next token is %d", token)
				}
			})
		})
	}
	t.Run("of an acquisition", func(t *testing.T) {
		t.Parallel()
		on(t, knowing, func(t *testing.T, db *sqltest.Database) {
			p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
			release(t, takeKnown(t, l))
			p.loseAnswerTo(onWire(db, []byte("x")))
			if lock, err := l.TryAcquire(t.Context(), "x"); err == nil || p.answersLost() != 1 {
				t.Errorf("TryAcquire: %v, %v; %d answers lost", lock, err, p.answersLost())
			}
			next := <-acquiring(newLocker(t, db.DB), "x")
			if token := next.Token(); token != 4 {
				t.Errorf("the next token is %d", token)
			}
		})
	})
}

// MariaDB waits for a locked row even if the row does not match.
func TestANameWhoseTokenIsKnownIsNotWaitedForWhileItsHolderGuards(t *testing.T) {
	t.Parallel()
	on(t, knowing, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		release(t, takeKnown(t, l))
		lease := take(t, newLocker(t, db.DB), "x")
		tx := db.MustBeginTx(t.Context(), nil)
		defer func() { _ = tx.Rollback() }()
		if err := lease.Guard(t.Context(), leasetable.SQLTx(tx.Tx)); err != nil {
			t.Fatal(err)
		}
		withoutWaiting(t, db, func() {
			if lock, err := l.TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("TryAcquire = %v, %v", lock, err)
			}
		})
	})
}

func TestANameWhoseTokenIsKnownIsNeitherTakenNorFreedByAStatementWhoseCommitFails(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, db.DB)
	lease := takeKnown(t, l)
	run(t, db, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = '54000'; END $$")
	refuse := "CREATE CONSTRAINT TRIGGER no AFTER UPDATE ON sqllock_lock DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION no()"
	run(t, db, refuse)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := lease.Release(ctx); err == nil {
		t.Error("its release failed at the commit, and nobody was told")
	}
	if n := count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL"); n != 1 {
		t.Error("it was freed")
	}
	run(t, db, "DROP TRIGGER no ON sqllock_lock")

	release(t, takeKnown(t, l)) // after the release in the background
	run(t, db, refuse)
	if lock, err := l.TryAcquire(t.Context(), "x"); err == nil {
		t.Errorf("%v was taken by a statement that failed at its commit", lock)
	}
	run(t, db, "DROP TRIGGER no ON sqllock_lock")
	take(t, newLocker(t, db.DB), "x")
}
