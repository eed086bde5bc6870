package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// I17.
func TestAnAcquireWhoseAnswerIsLostLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		kept := take(t, l, "kept") // keeps the lease alive
		p.spare = 1                // a name without a row: one statement that finds none
		for i := range int64(2) {
			p.loseAnswerTo(onWire(db, []byte("unanswered")))
			if _, err := l.TryAcquire(t.Context(), "unanswered"); err == nil || !sqllock.IsRetryable(err) {
				t.Fatalf("an acquire without an answer: %v", err)
			}
			if lost := p.answersLost(); lost != int(i+1) {
				t.Fatalf("%d answers were lost", lost)
			}
			// Its row was acquired, and is released long before the lease of an hour expires.
			lease := take(t, other, "unanswered")
			if lease.Token() != 2*(i+1) {
				t.Errorf("token %d: the lost acquire had not taken the row", lease.Token())
			}
			take(t, l, fmt.Sprint(i)) // on a new lease
			if n := leaseRows(t, db); n < 2 {
				t.Errorf("%d leases", n)
			}
			release(t, lease)
		}
		if err := kept.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The statement acquired the name, and its response does not arrive. I19.
func TestAnAcquireWhoseCallerHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		release(t, take(t, l, "late answer"))
		kept := take(t, l, "kept")
		t.Cleanup(p.delayAnswerTo(onWire(db, []byte("late answer"))))
		ctx, leave := context.WithCancel(t.Context())
		tried := make(chan error, 1)
		go func() {
			_, err := l.Acquire(ctx, "late answer")
			tried <- err
		}()
		eventually(t, func() bool { return count(t, db, "SELECT max(token) FROM sqllock_lock") == 2 })
		leave()
		if err := <-tried; !errors.Is(err, context.Canceled) {
			t.Errorf("Acquire: %v", err)
		}
		if token := take(t, other, "late answer").Token(); token != 3 { // long before the lease of an hour expires
			t.Errorf("the next holder has token %d", token)
		}
		release(t, kept)
	})
}

// Callers that have less time than it takes to connect leave a lease for later callers.
func TestALeaseIsOpenedWhenItsCallerHasLeft(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db)
		passOn := p.delayAnswerTo("sqllock_lease")
		asked := p.armed.Asked()
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		go func() {
			select {
			case <-asked: // the caller would not wait for ever
				leave()
			case <-ctx.Done():
			}
		}()
		tried := make(chan error, 1)
		go func() {
			_, err := l.TryAcquire(ctx, "x")
			tried <- err
		}()
		if err := <-tried; !errors.Is(err, context.Canceled) {
			t.Errorf("TryAcquire: %v", err)
		}
		passOn()
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_lease") == 1 })
		release(t, take(t, l, "x"))
		if n := count(t, db, "SELECT count(*) FROM sqllock_lease"); n != 1 {
			t.Errorf("there are %d leases", n)
		}
	})
}

// A stall or a failover can end the lease of a claim before the response arrives. That says nothing about the name.
func TestAClaimWhoseOwnLeaseEndedBeginsAgain(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		for how, acquire := range map[string]func(*leasetable.Locker) (*leasetable.Lease, error){
			"Acquire":    func(l *leasetable.Locker) (*leasetable.Lease, error) { return l.Acquire(t.Context(), "x") },
			"TryAcquire": func(l *leasetable.Locker) (*leasetable.Lease, error) { return l.TryAcquire(t.Context(), "x") },
		} {
			p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
			release(t, take(t, l, "x"))
			other := take(t, l, "on the same lease")
			passOn := p.delayAnswerTo(onWire(db, []byte("x")))
			taken := make(chan *leasetable.Lease, 1)
			go func() {
				lock, err := acquire(l)
				if err != nil {
					t.Errorf("%s: %v", how, err)
				}
				taken <- lock
			}()
			eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL") == 2 })
			run(t, db, "DELETE FROM sqllock_lease")
			renewUntilLost(t, other)
			passOn()
			if lock := <-taken; lock != nil {
				release(t, lock)
			}
		}
	})
}

// If the database says that a name was not acquired although it was, the name does not stay held.
func TestANameThatWasTakenForNobodyIsGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept")
		if err := take(t, l, "nobody's").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lock SET token = 2, lease_id = (SELECT id FROM sqllock_lease) WHERE name = ?", []byte("nobody's"))
		if token := take(t, l, "nobody's").Token(); token != 3 {
			t.Errorf("token %d", token)
		}
		if err := kept.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// I21.
func TestAReleaseWhoseAnswerIsLostIsConfirmedByAnother(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "unanswered")
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		if err := lease.Release(t.Context()); err != nil || p.answersLost() != 1 {
			t.Errorf("Release: %v; %d answers lost", err, p.answersLost())
		}
		locktest.MustTry(t, newLocker(t, db.DB), "unanswered")
	})
}

func TestARenewalWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(survivingTTL))
		lease := take(t, l, "x")
		id := leaseOf(t, db, "x")
		for range 3 { // one after the other
			p.lost = append(p.lost, p.DropAnswer(onWire(db, id)))
		}
		eventually(t, func() bool { return p.answersLost() == 3 })
		eventually(t, func() bool { return count(t, db, "SELECT renewals FROM sqllock_lease") > 3 })
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func serverHangs(t *testing.T, server *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	const ttl = 18 * time.Second
	l := newLocker(t, db.DB, leasetable.WithTTL(ttl))
	lease := take(t, l, "x")
	server.Pause()
	tried := make(chan error, 1)
	go func() {
		_, err := l.TryAcquire(context.Background(), "y")
		tried <- err
	}()
	mustBeToldWithin(t, lease, ttl) // the last confirmed statement was sent before
	if err := <-tried; err == nil || !strings.Contains(err.Error(), "does not answer a lone SELECT either") {
		t.Errorf("TryAcquire on a server that hangs: %v", err)
	}
	server.Resume()
	take(t, newLocker(t, db.DB), "x") // as soon as it has expired for the database too
	if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
		t.Errorf("Release of a lock that somebody took: %v", err)
	}
}

// The server goes on with a statement that waits for a table after its client has left. If that took a year, which is the
// default, every repetition would leave one more connection behind.
func serverIsDumped(t *testing.T, _ *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	lease := take(t, l, "held")
	dump, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer dump.Close()
	if _, err := dump.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK"); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := l.TryAcquire(t.Context(), fmt.Sprint(i)); !sqllock.IsRetryable(err) {
			t.Errorf("TryAcquire under a global read lock: %v", err)
		}
	}
	const connections = 2 // of a Locker that nobody waits with
	if n := count(t, db, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for %'"); n > connections {
		t.Errorf("%d statements wait", n)
	}
	if _, err := dump.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	take(t, l, "0")
}

func serverRestarts(t *testing.T, server *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithOwner("survivor"))
	lease := take(t, l, "x")
	server.Kill()
	server.Start()
	h := mustBeHeld(t, newLocker(t, db.DB), "x")
	if h.Owner != "survivor" || lease.Context().Err() != nil {
		t.Errorf("after the restart the holder is %v, the lock's end %v", h, context.Cause(lease.Context()))
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAServerThatStallsDoesNotHoldUpAnAttemptForEver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // ends with the connection in any case
	if _, err := tx.ExecContext(t.Context(), "LOCK TABLE sqllock_lease IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	for { // until the server answers the check within a second, which may fail on a busy machine
		_, err := l.TryAcquire(context.Background(), "x")
		if !sqllock.IsRetryable(err) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("TryAcquire on a server that stalls: %v; want an error that may be retried, and is not the caller's deadline", err)
		}
		if strings.Contains(err.Error(), "does answer a SELECT") {
			return
		}
	}
}

// pin locks the row of a name in another transaction, until the returned function is called.
func pin(t *testing.T, db *sqltest.Database, name string) (unpin func()) {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unpin = sync.OnceFunc(func() { _ = tx.Rollback() }) // ends with the connection in any case
	t.Cleanup(unpin)
	if _, err := tx.ExecContext(t.Context(), tx.Rebind("SELECT token FROM sqllock_lock WHERE name = ? FOR UPDATE"), []byte(name)); err != nil {
		t.Fatal(err)
	}
	return unpin
}

// I38.
func TestALockThatCannotBeReleasedHoldsUpNoRenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(2*time.Minute))
		pinned := take(t, l, "pinned")
		take(t, l, "also") // keeps the lease alive
		const ttl = 30 * time.Second
		lock := locktest.MustTry(t, l, "brief", sqllock.WithTTL(ttl))
		unpin := pin(t, db, "pinned")
		if err := pinned.Release(t.Context()); err == nil || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of a row that is locked: %v; want that it was not confirmed", err)
		}
		renewals := func() int {
			return count(t, db, fmt.Sprint("SELECT renewals FROM sqllock_lease WHERE ttl_us = ", ttl.Microseconds()))
		}
		before := renewals()
		eventually(t, func() bool { return renewals() > before })
		if err := lock.Context().Err(); err != nil {
			t.Errorf("another lock ended: %v", context.Cause(lock.Context()))
		}
		unpin()
		take(t, newLocker(t, db.DB), "pinned") // long before its lease of two minutes expires
	})
}

// After the loss, another goroutine in the queue acquired the name, on the same lease. I18.
func TestALostLockThatCannotBeReleasedFreesNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		lost := take(t, l, "cut off")
		if _, err := other.ForceRelease(t.Context(), "cut off"); err != nil {
			t.Fatal(err)
		}
		if err := lost.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Fatal(err)
		}
		next := take(t, l, "cut off")
		p.switchTo("127.0.0.1:1") // no listener
		if err := lost.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
		p.switchTo(addressOf(db))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := other.Acquire(ctx, "cut off"); err == nil {
			t.Error("it was freed")
		}
		mustVerify(t, next)
	})
}

// The reported loss stays valid, whatever happens to the row. I21.
func TestALockThatWasToldLostIsNotReleasedAsIfItHadBeenHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		change := func(text string) {
			run(t, db, "UPDATE sqllock_lock SET token = token "+text+" WHERE name = ?", []byte("x"))
		}
		for _, end := range []func(*leasetable.Lease) error{
			func(lease *leasetable.Lease) error { return lease.Release(t.Context()) },
			func(lease *leasetable.Lease) error { _, err := lease.Export(t.Context(), time.Hour); return err },
		} {
			lease := take(t, l, "x")
			change("+ 1")
			if err := lease.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
				t.Fatalf("Verify: %v", err)
			}
			change("- 1")
			if err := end(lease); !errors.Is(err, sqllock.ErrLost) {
				t.Errorf("at its end: %v", err)
			}
			release(t, take(t, l, "x"))
		}
	})
}

func TestAWaitOutlastsARowThatIsLockedForLong(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		const ttl = 5 * time.Second // no lock lives by it
		l := newLocker(t, db.DB, leasetable.WithTTL(ttl))
		if err := take(t, l, "x").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		unpin := pin(t, db, "x")
		taken := make(chan error, 1)
		go func() {
			_, err := l.Acquire(context.Background(), "x")
			taken <- err
		}()
		eventually(t, func() bool { return leaseRows(t, db) > 0 && waitsForRow(t, db) })
		timer := time.NewTimer(2 * ttl)
		defer timer.Stop()
		select {
		case err := <-taken:
			t.Fatalf("Acquire returned %v while the row was locked", err)
		case <-timer.C:
		}
		unpin()
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}

// PostgreSQL 17 ends the session when a transaction takes too long, and a statement is one.
func TestAWaitOutlastsATimeLimitOfTransactions(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := tables.Postgres(t)
	if count(t, db, "SELECT count(*) FROM pg_settings WHERE name = 'transaction_timeout'") == 0 {
		t.Skip("this server has no such limit")
	}
	l := newLocker(t, open(t, db.DriverName(), with(db, "transaction_timeout=300")), leasetable.WithTTL(time.Hour))
	release(t, take(t, l, "x"))
	unpin := pin(t, db, "x")
	taken := make(chan error, 1)
	go func() {
		_, err := l.Acquire(t.Context(), "x")
		taken <- err
	}()
	for pid, ended := 0, 0; ended < 2; {
		eventually(t, func() bool {
			now := count(t, db, "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
			again := now != 0 && now != pid
			if again {
				pid, ended = now, ended+1
			}
			return again || len(taken) > 0
		})
		if len(taken) > 0 {
			t.Fatalf("Acquire returned %v while the row was locked", <-taken)
		}
	}
	unpin()
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

func mustCloseSoon(t *testing.T, l *leasetable.Locker) {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-timer.C:
		t.Fatal("Close still waits after a minute")
	}
}

// I15.
func TestCloseDoesNotWaitForAStatementThatHangs(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		if err := take(t, l, "x").Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		pin(t, db, "x")
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if _, err := l.TryAcquire(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("TryAcquire: %v", err)
		}
		mustCloseSoon(t, l)
	})
}

func serverIsAway(t *testing.T, server *sqltest.Server, db *sqltest.Database) {
	t.Helper()
	l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
	lease := take(t, l, "x")
	server.Kill()
	if err := lease.Release(t.Context()); err == nil {
		t.Error("a server that is away confirmed a release")
	}
	server.Start()
	take(t, newLocker(t, db.DB), "x")
}
