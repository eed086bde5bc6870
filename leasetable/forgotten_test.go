package leasetable_test

import (
	"context"
	"errors"
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
		l := newLocker(t, db.DB, leasetable.WithTTL(survivingTTL))
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

// While the names of a lease are compared with the known locks, no more names may be acquired on it. Afterwards they are: where
// locks are held for long, each reconnection would otherwise leave a lease. I23.
func TestALeaseThatIsOnAnotherConnectionTakesNoNamesUntilItIsSearched(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		searching, goOn := make(chan struct{}), make(chan struct{})
		searches := 0
		s.names = func(ctx context.Context, id []byte, after string, limit int) ([]store.State, error) {
			if searches++; searches == 1 {
				close(searching)
				<-goOn
			}
			return s.Store.NamesOf(ctx, id, after, limit)
		}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept")
		s.Reconnect()
		renew := func() {
			if err := kept.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		renew()
		<-searching
		pass(time.Second)
		between := take(t, l, "between")
		s.Reconnect() // the search begins anew
		renew()
		close(goOn)
		pass(time.Second)
		after := take(t, l, "after")
		if leasetable.OnSameLease(between, kept) || !leasetable.OnSameLease(after, kept) {
			t.Errorf("during the search: %v, after it: %v", leasetable.OnSameLease(between, kept), leasetable.OnSameLease(after, kept))
		}
		if searches != 4 { // a page and the end, twice
			t.Errorf("%d pages were read", searches)
		}
		release(t, kept, between, after)
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
	if err := insist(t.Context(), func() error { return kept.Renew(t.Context()) }); err != nil { // on a new connection
		t.Fatal(err)
	}
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
		if err := errors.Join(next.Verify(t.Context()), next.Release(t.Context())); err != nil || next.Token() != 1 {
			t.Errorf("the holder, with token %d: %v", next.Token(), err)
		}
	})
}
