package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// A statement may return its rows and then fail at the commit: then its changes did not happen, or the outcome is
// unknown.

// atCommitOfSeveral makes PostgreSQL run a statement at each commit that changed several names.
func atCommitOfSeveral(t *testing.T, db *sqltest.Database, what string) {
	t.Helper()
	run(t, db, `CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
		BEGIN
			IF (SELECT count(*) FROM sqllock_lock WHERE xmin = pg_current_xact_id()::xid) > 1 THEN
				`+what+`;
			END IF;
			RETURN NULL;
		END $$`)
	run(t, db, `CREATE CONSTRAINT TRIGGER at_commit AFTER UPDATE ON sqllock_lock
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()`)
}

// I16.
func TestNamesOfAStatementWhoseCommitFailsAreNeitherHeldNorFreed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, code := range []string{
		"40001", // serialization failure
		"54000", // the notification queue is full
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			db := withTables(t, sqltest.Postgres(t))
			l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
			const names = 40
			for i := range names {
				lock := take(t, other, fmt.Sprint(i))
				if i%4 != 0 {
					release(t, lock)
				}
			}
			take(t, l, "kept")
			atCommitOfSeveral(t, db, "RAISE 'no' USING ERRCODE = '"+code+"'")
			var all sync.WaitGroup
			locks := make([]*leasetable.Lease, names)
			for i := range names {
				all.Go(func() { locks[i], _ = l.TryAcquire(t.Context(), fmt.Sprint(i)) }) // or the error
			}
			all.Wait()
			for i, lock := range locks {
				name := fmt.Sprint(i)
				switch {
				case lock != nil:
					mustBeHeld(t, other, name)
				case i%4 != 0:
					locks[i] = take(t, l, name)
				}
			}
			for _, lock := range locks {
				if lock == nil {
					continue
				}
				all.Go(func() {
					if err := lock.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for i, lock := range locks {
				if lock == nil {
					continue
				}
				locktest.MustTry(t, other, fmt.Sprint(i))
			}
		})
	}
}

// tryOnly has no waiting Acquire.
type tryOnly struct{ *leasetable.Locker }

func (tryOnly) Acquire(context.Context, string, ...sqllock.Option) (*leasetable.Lease, error) {
	return nil, errors.New("it is not waited for")
}

// I17.
func TestNamesOfAStatementThatIsCommittedAfterItsConnectionBrokeAreGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
	other := newLocker(t, db.DB)
	take(t, l, "kept")
	names := make([]string, 40) // so long that the server sends some of them before the commit
	for i := range names {
		names[i] = fmt.Sprint(i, strings.Repeat(" ", 1000))
		release(t, take(t, other, names[i]))
	}
	conn, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "SELECT pg_advisory_lock(1)"); err != nil {
		t.Fatal(err)
	}
	// Canceling the wait, as the driver requests, does not undo the statement. A synchronous standby behaves the same.
	atCommitOfSeveral(t, db, `BEGIN
			PERFORM pg_advisory_xact_lock(1);
		EXCEPTION WHEN query_canceled THEN
			PERFORM pg_advisory_xact_lock(1);
		END`)
	failed := make(chan error)
	go func() {
		lock, err := sqllock.AcquireAll(t.Context(), tryOnly{l}, names)
		if err == nil {
			err = lock.Release(t.Context())
		}
		failed <- err
	}()
	eventually(t, func() bool {
		var waiting bool
		// Other tests use this server, too.
		err := db.GetContext(t.Context(), &waiting, `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))`)
		return err == nil && waiting
	})
	p.switchTo(addressOf(db))
	if err := <-failed; err == nil {
		t.Error("no error")
	}
	if _, err := conn.ExecContext(t.Context(), "SELECT pg_advisory_unlock(1)"); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		release(t, take(t, other, name)) // long before the lease expires
	}
}

// With a rollback journal, a reader of an SQLite file keeps others from committing.
func TestLocksThatAreReleasedTogetherWhileSomebodyReadsAreFreeAfterwards(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	file := filepath.Join(t.TempDir(), "x.db")
	db := withTables(t, &sqltest.Database{DB: open(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(DELETE)")})
	counted, statements := counting(t, db)
	l, other := newLocker(t, counted), newLocker(t, db.DB)
	names := []string{"a", "b", "c", "d"}
	var locks []*leasetable.Lease
	for _, name := range names {
		locks = append(locks, take(t, l, name))
	}
	reader, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reader.Rollback() }()
	var rows int
	if err := reader.GetContext(t.Context(), &rows, "SELECT count(*) FROM sqllock_lock"); err != nil {
		t.Fatal(err)
	}
	before := statements.n.Load()
	var all sync.WaitGroup
	for _, lock := range locks {
		all.Go(func() {
			if err := releaseOrGiveUp(t.Context(), lock); err != nil && !errors.Is(err, errGaveUp) {
				t.Error(err)
			}
		})
	}
	eventually(t, func() bool { return statements.n.Load() >= before+4 }) // each waits for the reader for a while
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	for _, name := range names {
		take(t, other, name)
	}
}
