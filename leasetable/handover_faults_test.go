package leasetable_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// I26.
func TestAnExportWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "unanswered")
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		ticket := export(t, lease, time.Hour)
		if p.answersLost() != 1 {
			t.Error("no answer was lost")
		}
		if token := takeOn(t, newLocker(t, db.DB), ticket).Token(); token != 2 {
			t.Errorf("the next holder has token %d", token)
		}
	})
}

// I28.
func TestAnAdoptionWhoseAnswerIsLostIsFoundOut(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		ticket := export(t, take(t, other, "unanswered"), time.Hour)
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		heir := takeOn(t, l, ticket)
		if heir.Token() != 2 || p.answersLost() != 1 {
			t.Errorf("token %d; %d answers lost", heir.Token(), p.answersLost())
		}
		mustRenew(t, heir)
		if h := mustBeHeld(t, other, "unanswered"); h.Token != 2 {
			t.Errorf("others see %v", h)
		}
		if err := heir.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The adoption runs on the server after its caller has left.
func TestAnAdoptionWhoseCallerHasLeftIsGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		ticket := export(t, take(t, other, "late answer"), time.Hour)
		passOn := p.delayAnswerTo(onWire(db, []byte("late answer")))
		ctx, leave := context.WithCancel(t.Context())
		adopted := make(chan error, 1)
		go func() {
			_, err := l.Adopt(ctx, ticket)
			adopted <- err
		}()
		eventually(t, func() bool { return count(t, db, "SELECT token FROM sqllock_lock") == 2 })
		leave()
		if err := <-adopted; !errors.Is(err, context.Canceled) {
			t.Errorf("Adopt: %v", err)
		}
		passOn()
		if token := take(t, other, "late answer").Token(); token != 3 { // long before the lease of an hour expires
			t.Errorf("the next holder has token %d", token)
		}
		mustBeUsed(t, other, ticket)
	})
}

func TestAnExportThatIsNotConfirmedGivesTheNameBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		take(t, l, "also") // keeps the lease alive
		lease := take(t, l, "pinned")
		unpin := pin(t, db, "pinned")
		if ticket, err := lease.Export(t.Context(), time.Hour); err == nil || ticket != "" || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Export of a row that is locked: %q, %v", ticket, err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrReleased) {
			t.Errorf("the lock ended with %v", cause)
		}
		unpin()
		take(t, newLocker(t, db.DB), "pinned") // long before its lease or the ticket expires
	})
}

// No statement that would move the name is left on the server.
func TestAnExportWhoseConnectionsEndGivesTheNameBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		take(t, l, "also") // keeps the lease alive
		lease := take(t, l, "pinned")
		unpin := pin(t, db, "pinned")
		exported := make(chan error, 1)
		go func() {
			_, err := lease.Export(context.Background(), time.Hour)
			exported <- err
		}()
		done := false
		eventually(t, func() bool {
			endWaiting(t, db)
			select {
			case err := <-exported:
				if err == nil {
					t.Error("an export was confirmed whose row is locked")
				}
				done = true
			default:
			}
			return done
		})
		endWaiting(t, db)
		unpin()
		take(t, newLocker(t, db.DB), "pinned") // long before its lease expires
	})
}

// endWaiting ends the connections whose statements wait for a row.
func endWaiting(t *testing.T, db *sqltest.Database) {
	t.Helper()
	if db.Engine == sqltest.EnginePostgres {
		count(t, db, "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")
		return
	}
	kill(t, db, "ID IN (SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT')")
}

func TestALockThatIsNotExportedIsHeldAsBefore(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, l, "x")
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := lease.Export(dead, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("Export with a dead context: %v", err)
		}
		for _, valid := range []time.Duration{0, -1, time.Millisecond, 366 * 24 * time.Hour} {
			if _, err := lease.Export(t.Context(), valid); err == nil {
				t.Errorf("Export for %v succeeded", valid)
			}
		}
		again := take(t, l, "again")
		run(t, db, "ALTER TABLE sqllock_lease RENAME TO elsewhere")
		if _, err := again.Export(t.Context(), time.Minute); !errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("Export without a table: %v", err)
		}
		run(t, db, "ALTER TABLE elsewhere RENAME TO sqllock_lease")
		takeOn(t, other, export(t, again, time.Hour))
		mustVerify(t, lease)
		if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		next := take(t, other, "x")
		if _, err := lease.Export(t.Context(), time.Minute); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Export of a lock that was lost: %v", err)
		}
		mustVerify(t, next)
		release(t, next)
		if _, err := next.Export(t.Context(), time.Minute); !errors.Is(err, sqllock.ErrReleased) {
			t.Errorf("Export after Release: %v", err)
		}
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_lease WHERE ttl_us = 60000000") == 0 })
	})
}

// An acquisition whose response is lost is undone by name and lease. An adopted lock is on a lease of its own. I18.
func TestALostAnswerToAnAcquisitionDoesNotFreeWhatWasAdopted(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		for _, d := range []time.Duration{0, 10 * time.Hour} {
			p, dsn := through(t, db)
			l, other := newLocker(t, open(t, db.DriverName(), dsn), leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
			also := take(t, l, "also")
			heir := takeOn(t, l, export(t, take(t, other, "unanswered"), time.Minute))
			if d > 0 {
				if err := errors.Join(also.Extend(t.Context(), d), heir.Extend(t.Context(), d)); err != nil {
					t.Fatal(err)
				}
			}
			id := leaseOf(t, db, "also")
			var us int64
			if err := db.GetContext(t.Context(), &us, db.Rebind("SELECT ttl_us FROM sqllock_lease WHERE id = ?"), id); err != nil {
				t.Fatal(err)
			}
			p.loseAnswerTo(onWire(db, id))
			ttl := sqllock.WithTTL(time.Duration(us) * time.Microsecond)
			if _, err := l.TryAcquire(t.Context(), "unanswered", ttl); !sqllock.IsRetryable(err) || p.answersLost() != 1 {
				t.Errorf("TryAcquire: %v; %d answers lost", err, p.answersLost())
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := other.Acquire(ctx, "unanswered"); err == nil {
				t.Error("it was freed")
			}
			mustVerify(t, heir)
			release(t, heir, also)
		}
	})
}

// lockLeases prevents all changes of leases, and the opening of a lease, until the returned function is called.
func lockLeases(t *testing.T, db *sqltest.Database) (unlock func()) {
	t.Helper()
	tx, err := db.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() { _ = tx.Rollback() }) // ends with the connection in any case
	t.Cleanup(unlock)
	statement := "SELECT id FROM sqllock_lease FOR UPDATE" // also locks the gaps between them
	if db.Engine == sqltest.EnginePostgres {
		statement = "LOCK TABLE sqllock_lease IN EXCLUSIVE MODE"
	}
	if _, err := tx.ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// The lease that the call needs is opened on the connection for renewals, and the server may have no other connection
// left.
func TestWhoLeavesWhileALeaseIsOpenedDoesNotEndTheConnectionOfRenewals(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, network := breakably(t, db, leasetable.WithTTL(time.Hour))
		network.set(false)
		other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		held, adopted := take(t, l, "held"), takeOn(t, l, export(t, take(t, other, "adopted"), time.Hour))
		ticket := export(t, take(t, other, "x"), time.Hour)
		for what, call := range map[string]func(ctx context.Context) error{
			"Extend": func(ctx context.Context) error { return adopted.Extend(ctx, 10*time.Hour) },
			"Adopt": func(ctx context.Context) error {
				_, err := l.Adopt(ctx, ticket)
				return err
			},
		} {
			unlock := lockLeases(t, db)
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan error, 1)
			began := time.Now()
			go func() {
				err := call(ctx)
				for ctx.Err() == nil { // on a machine that stalls, a statement takes longer than it may before it is seen to wait
					err = call(ctx)
				}
				left <- err
			}()
			eventually(t, func() bool { return waitsForRow(t, db) })
			leave()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", what, err)
			}
			unlock()
			stalled := time.Since(began) > unanswered // then the statement's own end may have cost the connection
			network.set(true)
			if err := held.Renew(t.Context()); err != nil && !stalled {
				t.Errorf("a renewal after somebody had left %s: %v", what, err)
			}
			network.set(false)
		}
		if err := errors.Join(held.Release(t.Context()), adopted.Release(t.Context())); err != nil {
			t.Error(err)
		}
		takeOn(t, other, ticket) // it is still valid
	})
}
