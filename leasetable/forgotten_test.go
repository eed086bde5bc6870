package leasetable_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// A failover or a crash can lose a release while the owner's lease survives. I23.
func TestANameWhoseReleaseTheDatabaseForgotIsFreedByItsOwner(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		kept, forgotten := take(t, l, "kept"), take(t, l, "forgotten")
		if err := forgotten.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease := leaseOf(t, db, "kept")
		run(t, db, "UPDATE sqllock_lock SET lease_id = ? WHERE name = ?", lease, []byte("forgotten"))
		run(t, db, "INSERT INTO sqllock_lock (name, token, permits, acquired_at) VALUES (?, 7, 1, "+soonOver[db.Engine]+")", []byte("permit"))
		run(t, db, "INSERT INTO sqllock_permit (name, token, lease_id, permits, acquired_at) VALUES (?, 7, ?, 0, "+soonOver[db.Engine]+")", []byte("permit"), lease)
		mustBeHeld(t, newLocker(t, db.DB), "forgotten")
		endConnections(t, db)
		mustRenew(t, kept) // on a new connection
		next := take(t, newLocker(t, db.DB), "forgotten")
		take(t, newLocker(t, db.DB), "permit", leasetable.WithLimit(1))
		if next.Token() != forgotten.Token()+1 {
			t.Errorf("the next token is %d after %d", next.Token(), forgotten.Token())
		}
		for _, lease := range []*leasetable.Lease{kept, next} {
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// While the names of a lease are compared with the known locks, no more names may be acquired on it. I23.
func TestALeaseThatIsOnAnotherConnectionTakesNoMoreNames(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept")
		db.SetMaxIdleConns(0) // no ended connection is used again
		endConnections(t, db)
		eventually(t, func() bool {
			_, err := l.Inspect(t.Context(), "next") // on a connection other than that of renewals
			return err == nil && kept.Renew(t.Context()) == nil
		})
		take(t, l, "next")
		if bytes.Equal(leaseOf(t, db, "kept"), leaseOf(t, db, "next")) {
			t.Error("the lease has taken another name")
		}
	})
}

func TestANameWhoseReleaseACrashForgotIsFreedByItsOwner(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	server := sqltest.Start(t, sqltest.EnginePostgres, sqltest.Setting("wal_writer_delay", "10s"), sqltest.Setting("fsync", "on"))
	db := withTables(t, server.Database(t))
	l := newLocker(t, db.DB, leasetable.WithTTL(10*time.Minute))
	kept, forgotten := take(t, l, "kept"), take(t, l, "forgotten")
	if err := forgotten.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	db.SetMaxIdleConns(0) // the crash ends connections
	server.Kill()
	server.Start()
	if n := count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL"); n != 2 {
		t.Skip("the crash forgot nothing")
	}
	mustRenew(t, kept) // on a new connection
	next := take(t, newLocker(t, db.DB), "forgotten")
	if next.Token() <= forgotten.Token() {
		t.Errorf("the next token is %d after %d", next.Token(), forgotten.Token())
	}
	for _, lease := range []*leasetable.Lease{kept, next} {
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The orphan that a lost response may have left is released repeatedly. Meanwhile another client acquires the name, and
// must keep it. I18.
func TestANameThatMayHaveBeenTakenIsFreedUnderNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		take(t, l, "kept") // keeps the lease alive
		word := onWire(db, []byte("unanswered"))
		p.loseAnswerTo(word)
		if _, err := l.TryAcquire(t.Context(), "unanswered"); err == nil { // the name has no row
			t.Fatal("the answer was not lost")
		}
		next := take(t, newLocker(t, db.DB), "unanswered")
		lost := p.answersLost()
		p.loseAnswerTo(word)
		eventually(t, func() bool { return p.answersLost() > lost }) // of a statement that ran
		mustVerify(t, next)
		release(t, next)
		if next.Token() != 1 {
			t.Errorf("the holder has token %d", next.Token())
		}
	})
}

// A lease may last for months, and have many orphans. I17.
func TestAnOrphanIsLookedAtLessAndLessOften(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MySQL).Store()}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept") // keeps the lease alive
		var asked atomic.Int64
		s.byLease = func(ctx context.Context, name string, id []byte, minHold time.Duration) (int64, error) {
			asked.Add(1)
			return s.Store.ReleaseByLease(ctx, name, id, minHold)
		}
		s.free = func(context.Context, *store.Request) (store.Result, error) { return store.Result{}, errCut }
		if _, err := l.TryAcquire(t.Context(), "x"); err == nil {
			t.Fatal("the answer was not lost")
		}
		pass(10 * time.Hour)
		if n := asked.Load(); n < 50 || n > 300 {
			t.Errorf("in 10 hours it was asked for %d times", n)
		}
		release(t, kept)
	})
}
