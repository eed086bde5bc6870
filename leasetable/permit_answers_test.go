package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// On MySQL and MariaDB: the responses to the statement that adds the permit, and to the commit. I32.
func TestAClaimOfAPermitWhoseAnswerIsLostTakesNoPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		other := newLocker(t, db.DB)
		take(t, l, "kept")
		id := leaseOf(t, db, "kept")
		words := []string{onWire(db, id)}
		if db.Engine != sqltest.EnginePostgres {
			words = append(words, "COMMIT")
		}
		var last int64
		for range 2 { // first the name has no row, then it has one
			for i, word := range words {
				p.loseAnswerTo(word)
				lost := p.answersLost()
				if _, err := l.TryAcquire(t.Context(), "x", leasetable.WithLimit(1)); err == nil || !sqllock.IsRetryable(err) {
					t.Fatalf("a claim without an answer: %v", err)
				}
				if p.answersLost() != lost+1 {
					t.Fatal("no answer was lost")
				}
				// Whether or not it acquired the permit: the state that it had read is outdated, and the permit is
				// free.
				eventually(t, func() bool {
					return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE name <> 'kept' AND token = "+itoa(last+1)) == 1 &&
						count(t, db, "SELECT count(*) FROM sqllock_permit") == 0
				})
				lease := take(t, []*leasetable.Locker{l, other}[i%2], "x", leasetable.WithLimit(1))
				if last += 2; lease.Token() != last {
					t.Errorf("token %d; want %d", lease.Token(), last)
				}
				release(t, lease)
			}
		}
		if n := count(t, db, "SELECT count(*) FROM sqllock_lease WHERE ttl_us = 3600000000"); n != 1 {
			t.Errorf("%d leases: there was no need for another one", n)
		}
	})
}

// The statement is carried out when its claim has been given up, and the lease lives on. I32.
func TestAClaimOfAPermitThatIsCarriedOutLateTakesNoPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, limit := keep(t, s), leasetable.WithLimit(1)
		kept := take(t, l, "kept")
		var late func() (int64, error)
		s.permit = func(ctx context.Context, name string, was store.State, id []byte, limit int) (int64, error) {
			late = func() (int64, error) {
				return s.Store.AcquirePermit(context.WithoutCancel(ctx), name, was, id, limit)
			}
			return 0, errCut
		}
		if _, err := l.TryAcquire(t.Context(), "x", limit); err == nil {
			t.Error("it has a permit")
		}
		pass(time.Second)
		if token, err := late(); token != 0 || err != nil {
			t.Errorf("token %d, %v", token, err)
		}
		release(t, take(t, keep(t, server.Store()), "x", limit), kept)
	})
}

// However late the claim arrives. I32.
func TestAClaimOfAPermitThatWasGivenUpTakesNoPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		release(t, take(t, l, "in places", leasetable.WithLimit(1)), take(t, l, "whole"))
		for _, name := range []string{"in places", "whole", "new"} {
			if token, err := leasetable.TakeLate(t.Context(), l, name); token != 0 || err != nil {
				t.Errorf("%s: token %d, %v", name, token, err)
			}
		}
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 0 {
			t.Errorf("%d permits were taken", n)
		}
	})
}

// Other callers of the process use the same lease, and read the same token, as the caller whose response is lost. I32.
func TestALostAnswerCostsNobodyElseItsPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		take(t, l, "kept")
		id := leaseOf(t, db, "kept")
		for range 10 {
			began := time.Now()
			p.loseAnswerTo(onWire(db, id))
			got := make(chan *leasetable.Lease, 4)
			for range cap(got) {
				go func() {
					lease, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared())
					if err != nil && !sqllock.IsRetryable(err) {
						t.Error(err)
					}
					got <- lease
				}()
			}
			var leases []*leasetable.Lease
			for range cap(got) {
				if lease := <-got; lease != nil {
					leases = append(leases, lease)
				}
			}
			if len(leases) != cap(got)-1 && time.Since(began) < unanswered { // else another may not have been answered in time
				t.Errorf("%d of %d got a permit, and one lost its answer", len(leases), cap(got))
			}
			eventually(t, func() bool { return !leasetable.HasOrphanPermit(l, "x") })
			for _, lease := range leases {
				mustVerify(t, lease)
			}
			if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != len(leases) {
				t.Errorf("%d permits for %d who have one", n, len(leases))
			}
			release(t, leases...)
		}
	})
}

func TestAReleaseOfAPermitWhoseAnswerIsLostIsConfirmedByAnother(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "unanswered", leasetable.WithLimit(1))
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		if err := lease.Release(t.Context()); err != nil || p.answersLost() != 1 {
			t.Errorf("Release: %v; %d answers lost", err, p.answersLost())
		}
		locktest.MustTry(t, newLocker(t, db.DB), "unanswered", leasetable.WithLimit(1))
	})
}

// A takeover of all permits holds the name by its lease, like any other acquisition.
func TestATakeoverOfAllPermitsWhoseAnswerIsLostLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		take(t, l, "kept")
		id := leaseOf(t, db, "kept")
		release(t, take(t, l, "x")) // a name that is new would be inserted next
		release(t, take(t, l, "x", leasetable.WithShared()))
		passOn := p.delayAnswerTo(onWire(db, id)) // to the statement that finds that the name has permits
		tried := make(chan error, 1)
		go func() {
			_, err := l.TryAcquire(context.Background(), "x")
			tried <- err
		}()
		eventually(t, func() bool { return !p.isArmed() })
		p.loseAnswerTo(onWire(db, id))
		passOn()
		if err := <-tried; err == nil || !sqllock.IsRetryable(err) || p.answersLost() != 1 {
			t.Fatalf("an acquisition without an answer: %v; %d answers lost", err, p.answersLost())
		}
		next := take(t, newLocker(t, db.DB), "x")
		if next.Token() != 4 {
			t.Errorf("token %d: the name had not been taken", next.Token())
		}
		release(t, next)
		release(t, take(t, newLocker(t, db.DB), "x", leasetable.WithShared()))
	})
}

// A permit that cannot be released at the moment delays no renewal, and is released later.
func TestAPermitThatCannotBeReleasedAtOnceIsReleasedLater(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(2*time.Minute))
		permit, also := take(t, l, "x", leasetable.WithLimit(2)), take(t, l, "x", leasetable.WithLimit(2))
		p.switchTo("127.0.0.1:1") // no listener
		if err := permit.Release(t.Context()); err == nil || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of a permit without a network: %v; want that it was not confirmed", err)
		}
		p.switchTo(addressOf(db))
		take(t, newLocker(t, db.DB), "x", leasetable.WithLimit(2))
		mustVerify(t, also)
	})
}

// On MySQL and MariaDB, whose drivers watch no context while a transaction ends. Close waits for what runs.
func TestACommitThatIsNotAnsweredHoldsUpNobody(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onMySQL(t, func(t *testing.T, db *sqltest.Database) {
		for _, wrapped := range []bool{false, true} {
			p, dsn := through(t, db)
			far := open(t, db.DriverName(), dsn)
			if wrapped { // the socket is unknown
				far, _ = counting(t, &sqltest.Database{DB: far})
			}
			l := newLocker(t, far, leasetable.WithTTL(time.Hour))
			release(t, take(t, l, "x", leasetable.WithLimit(1))) // so that there are a lease and a connection
			t.Cleanup(p.delayAnswerTo("COMMIT"))
			ctx, leave := context.WithCancel(t.Context())
			asked := p.armed.Asked()
			go func() { <-asked; leave() }()
			if _, err := l.TryAcquire(ctx, "x", leasetable.WithLimit(1)); !errors.Is(err, context.Canceled) {
				t.Errorf("wrapped %t: TryAcquire: %v", wrapped, err)
			}
			mustCloseSoon(t, l)
		}
	})
}
