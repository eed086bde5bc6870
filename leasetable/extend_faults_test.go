package leasetable_test

import (
	"bytes"
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
func TestAnExtensionWhoseAnswerIsLostIsRepeated(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db)
		lease := take(t, l, "unanswered")
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		if err := lease.Extend(t.Context(), time.Hour); err != nil || p.answersLost() != 1 {
			t.Errorf("Extend: %v; %d answers lost", err, p.answersLost())
		}
		mustVerify(t, lease)
		release(t, lease)
		if token := take(t, newLocker(t, db.DB), "unanswered").Token(); token != 2 {
			t.Errorf("the next holder has token %d", token)
		}
	})
}

// unanswered is for how long the statement of an extension certainly waits for its answer. Then it is sent again.
const unanswered = 2 * time.Second

// halfway extends a lock while the response is held back: the name has moved to another lease and its holder does not
// know.
func halfway(t *testing.T, db *sqltest.Database) (lease *leasetable.Lease, extended <-chan error, passOn func()) {
	t.Helper()
	p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
	take(t, l, "also") // keeps the lease alive
	lease = take(t, l, "halfway")
	before := leaseOf(t, db, "halfway")
	passOn = sync.OnceFunc(p.delayAnswerTo(onWire(db, []byte("halfway"))))
	t.Cleanup(passOn)
	done := make(chan error, 1)
	go func() { done <- lease.Extend(context.Background(), 10*time.Hour) }()
	eventually(t, func() bool { return !bytes.Equal(leaseOf(t, db, "halfway"), before) })
	return lease, done, passOn
}

func TestALockThatIsReleasedWhileItIsExtendedIsFree(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		began := time.Now()
		lease, extended, passOn := halfway(t, db)
		stalled := time.Since(began) > unanswered
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
		next := locktest.MustTry(t, newLocker(t, db.DB), "halfway")
		passOn()
		if err := <-extended; !errors.Is(err, sqllock.ErrReleased) && !stalled {
			t.Errorf("Extend of a lock that was released: %v", err)
		}
		mustVerify(t, next)
		release(t, next)
		release(t, take(t, leasetable.LockerOf(lease), "halfway"))
	})
}

// The name has moved to a lease that lasts for hours. I27.
func TestALockThatCannotBeReleasedWhileItIsExtendedIsFreedLater(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		take(t, l, "also") // keeps the lease alive
		lease := take(t, l, "halfway")
		before := leaseOf(t, db, "halfway")
		t.Cleanup(p.delayAnswerTo(onWire(db, []byte("halfway"))))
		began, extended := time.Now(), make(chan error, 1)
		go func() { extended <- lease.Extend(context.Background(), 10*time.Hour) }()
		eventually(t, func() bool { return !bytes.Equal(leaseOf(t, db, "halfway"), before) })
		p.switchTo("127.0.0.1:1") // no listener
		stalled := time.Since(began) > unanswered
		if err := lease.Release(t.Context()); err == nil || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release of a lock whose Locker is cut off: %v", err)
		}
		if err := <-extended; !errors.Is(err, sqllock.ErrReleased) && !stalled {
			t.Errorf("Extend of a lock that was released: %v", err)
		}
		p.switchTo(addressOf(db))
		release(t, take(t, newLocker(t, db.DB), "halfway"))
	})
}

// The previous lease of the lock ends. The holder learns of the loss, although the name has moved, and the name does
// not stay held.
func TestALockThatIsLostWhileItIsExtendedIsToldAndFree(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		began := time.Now()
		lease, extended, passOn := halfway(t, db)
		run(t, db, "DELETE FROM sqllock_lease WHERE ttl_us = ?", time.Hour.Microseconds())
		err := lease.Renew(t.Context())
		if stalled := time.Since(began) > unanswered; stalled && !errors.Is(err, sqllock.ErrLost) {
			t.Logf("the machine stalled, and the lock was on its other lease already: Renew: %v", err)
			return
		}
		if !errors.Is(err, sqllock.ErrLost) {
			t.Fatalf("Renew of a lease that is gone: %v", err)
		}
		if cause := await(t, lease); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		passOn()
		if err := <-extended; !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Extend: %v", err)
		}
		eventually(t, func() bool { return leaseRows(t, db) == 0 })               // the other lease has no locks, so it is not renewed
		if token := take(t, newLocker(t, db.DB), "halfway").Token(); token != 2 { // long before its lease of hours expires
			t.Errorf("the next holder has token %d", token)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Release: %v", err)
		}
	})
}

// The other lease ends, to which the lock may have moved. I27.
func TestALockEndsWithTheLeaseThatItIsExtendedBy(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		take(t, l, "also")
		lease := take(t, l, "pinned")
		long := locktest.MustTry(t, l, "long")
		if err := long.Extend(t.Context(), 10*time.Hour); err != nil { // opens the other lease
			t.Fatal(err)
		}
		unpin := pin(t, db, "pinned")
		extended := make(chan error, 1)
		go func() { extended <- lease.Extend(context.Background(), 10*time.Hour) }()
		eventually(t, func() bool { return waitsForRow(t, db) })
		run(t, db, "DELETE FROM sqllock_lease WHERE ttl_us > 3600000000")
		renewUntilLost(t, long)
		if cause := await(t, lease); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		unpin()
		if err := <-extended; !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Extend: %v", err)
		}
		take(t, newLocker(t, db.DB), "pinned") // on either lease
		take(t, l, "pinned 2")
	})
}

func TestAnExtensionThatIsNotAnsweredIsFoundOutInTheBackground(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(survivingTTL))
		also := take(t, l, "also")
		if err := also.Extend(t.Context(), time.Hour); err != nil { // then the other lease is open, and nothing else waits
			t.Fatal(err)
		}
		lease := take(t, l, "pinned")
		unpin := pin(t, db, "pinned")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		extended := make(chan error, 1)
		go func() { extended <- lease.Extend(ctx, time.Hour) }()
		eventually(t, func() bool { return waitsForRow(t, db) })
		cancel()
		if err := receive(t, extended); !errors.Is(err, context.Canceled) {
			t.Errorf("Extend of a row that is locked: %v", err)
		}
		if left := lease.Remaining(); left == 0 || left > survivingTTL {
			t.Errorf("%v are left while nothing is known", left)
		}
		unpin()
		eventually(t, func() bool { return lease.Remaining() > time.Hour })
		mustVerify(t, lease)
		release(t, lease)
	})
}

// An asynchronous failover can also lose the move of a name.
func TestAMoveThatTheDatabaseForgotIsLostAndTheNameFreed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		take(t, l, "also")
		lease := take(t, l, "x")
		before := leaseOf(t, db, "x")
		if err := lease.Extend(t.Context(), 10*time.Hour); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lock SET lease_id = (SELECT lease_id FROM (SELECT lease_id FROM sqllock_lock WHERE name = ?) was) WHERE name = ?",
			[]byte("also"), []byte("x"))
		if !bytes.Equal(leaseOf(t, db, "x"), before) {
			t.Fatal("the move was not forgotten")
		}
		if err := lease.Verify(t.Context()); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Verify: %v", err)
		}
		take(t, newLocker(t, db.DB), "x") // long before the lease of an hour expires
	})
}

// The search for what a failover lost finds the name on the lock's previous lease. The holder learns of the loss before
// another client can acquire the name, however far away the next renewal of its lease is.
func TestAMoveThatTheDatabaseForgotIsToldBeforeTheNameIsFreed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB, leasetable.WithTTL(survivingTTL)), newLocker(t, db.DB)
		also := take(t, l, "also")
		lease := take(t, l, "x")
		before := leaseOf(t, db, "x")
		if err := lease.Extend(t.Context(), 10*time.Hour); err != nil {
			t.Fatal(err)
		}
		run(t, db, "UPDATE sqllock_lock SET lease_id = ? WHERE name = ?", before, []byte("x"))
		endConnections(t, db)
		next := take(t, other, "x")
		if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("somebody has the name, and its holder was told %v", cause)
		}
		release(t, also, next)
	})
}

// The search does not count a lock as lost while the lock may be on either of two leases.
func TestALockIsKnownWhileItIsExtended(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lease, extended, passOn := halfway(t, db)
		mustVerify(t, lease)
		endConnections(t, db)
		renew := func() error { return lease.Renew(t.Context()) }
		if err := errors.Join(insist(t.Context(), renew), insist(t.Context(), renew)); err != nil { // on new connections
			t.Error(err)
		}
		passOn()
		if err := <-extended; err != nil {
			t.Errorf("Extend: %v", err)
		}
		mustVerify(t, lease)
		release(t, lease)
	})
}

func TestAReleaseInTheMiddleOfAnExtensionLetsInWhoWaits(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	lease, _, _ := halfway(t, db)
	other := newLocker(t, db.DB)
	next := acquiring(other, "halfway")
	eventually(t, func() bool { return leasetable.HasTurn(other, "halfway") })
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case lock := <-next:
		if lock == nil {
			t.Error("the waiter failed")
		}
	case <-time.After(time.Minute):
		t.Error("nobody got the name")
	}
}
