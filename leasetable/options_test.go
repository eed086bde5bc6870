package leasetable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestANameThatIsKeptIsNotPassedOnBefore(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		const keep = time.Second
		began := time.Now()
		lock := locktest.MustTry(t, l, "x", leasetable.WithHoldAtLeast(keep))
		next := line(t, l, "x", 1)
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if lease := mustGet(t, next); time.Since(began) < keep || lease.Token() != 2 {
			t.Errorf("after %v the next holder has token %d", time.Since(began), lease.Token())
		}
	})
}

func TestOptionsAreValidatedWithoutAnAcquisition(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	l := newLocker(t, sqltest.SQLite(t).DB) // without the tables: it is not asked
	if err := l.Validate("x", leasetable.WithHoldAtLeast(time.Second), sqllock.WithTTL(time.Minute)); err != nil {
		t.Error(err)
	}
	for _, err := range []error{
		l.Validate("x", sqllock.WithTTL(time.Millisecond)),
		l.Validate("x", leasetable.WithHoldAtLeast(-time.Second)),
		l.Validate("x", sqllock.WithWait(-time.Second)),
	} {
		if err == nil {
			t.Error("a value that is out of range is accepted")
		}
	}
	if err := l.Validate(""); !errors.Is(err, sqllock.ErrName) {
		t.Errorf("without a name: %v", err)
	}
	if err := l.Validate("x", leasetable.WithShared(), leasetable.WithLimit(2)); !errors.Is(err, sqllock.ErrUnsupported) {
		t.Errorf("two options that exclude each other: %v", err)
	}
}

// I12, I22.
func TestANameIsKeptForAtLeastSoLong(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		const keep = time.Second
		began := time.Now()
		lock := locktest.MustTry(t, l, "x", leasetable.WithHoldAtLeast(keep))
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if next := take(t, other, "x"); next.Token() != 2 || time.Since(began) < keep {
			t.Errorf("after %v the next holder has token %d", time.Since(began), next.Token())
		}

		lock = locktest.MustTry(t, l, "y", leasetable.WithHoldAtLeast(time.Hour))
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*leasetable.Locker{l, other} {
			if h := mustBeHeld(t, l, "y"); h.Until.IsZero() || h.Token != 1 {
				t.Errorf("the name is kept by %+v", h)
			}
		}
		if infos, err := l.List(t.Context(), "y"); err != nil || len(infos) != 1 || !infos[0].Held {
			t.Errorf("List = %+v, %v", infos, err)
		}
		if was, err := other.ForceRelease(t.Context(), "y"); err != nil || !was.Held {
			t.Errorf("ForceRelease of a kept name: %+v, %v", was, err)
		}
		if token := take(t, other, "y").Token(); token != 3 {
			t.Errorf("after a forced release the token is %d", token)
		}
		if _, err := l.TryAcquire(t.Context(), "z", leasetable.WithHoldAtLeast(-1)); err == nil {
			t.Error("a negative time was taken")
		}
	})
}

// A release that must be repeated in the background does not free the name sooner either. I22.
func TestANameIsKeptThoughItsReleaseWasNotConfirmed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lock := locktest.MustTry(t, newLocker(t, db.DB), "x", leasetable.WithHoldAtLeast(time.Hour))
		unpin := pin(t, db, "x")
		if err := lock.Release(t.Context()); err == nil { // it gives up
			t.Error("the release was confirmed")
		}
		unpin()
		eventually(t, func() bool { return leaseRows(t, db) == 0 }) // the lease is needed until then
		if held := mustBeHeld(t, newLocker(t, db.DB), "x"); time.Until(held.Until) < 50*time.Minute {
			t.Errorf("it is kept until %v", held.Until)
		}
	})
}

// The lease is renewed for a name that must be kept, but not forever.
func TestANameThatCannotBeFreedIsHeldNoLongerThanItIsToBeKept(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	lock := take(t, newLocker(t, db.DB, leasetable.WithTTL(survivingTTL)), "x", leasetable.WithHoldAtLeast(time.Second))
	run(t, db, "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
	run(t, db, "CREATE TRIGGER no BEFORE UPDATE ON sqllock_lock FOR EACH ROW EXECUTE FUNCTION no()")
	if err := lock.Release(t.Context()); err == nil {
		t.Error("the release was confirmed")
	}
	eventually(t, func() bool { return leaseRows(t, db) == 0 })
}

func TestAWaitGivesUpEarly(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		held := take(t, l, "x")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for _, l := range []*leasetable.Locker{l, other} { // in the queue behind the holder, and without a queue
			_, err := l.Acquire(ctx, "x", leasetable.WithGiveUpEarly())
			var who *sqllock.HeldError
			if !errors.As(err, &who) || who.Holder.Token != held.Token() {
				t.Errorf("Acquire: %v", err)
			}
		}
		short := locktest.MustTry(t, newLocker(t, db.DB, leasetable.WithTTL(time.Minute)), "y")
		next := make(chan error, 1)
		go func() {
			_, err := other.Acquire(ctx, "y", leasetable.WithGiveUpEarly())
			next <- err
		}()
		if err := errors.Join(short.Release(t.Context()), <-next); err != nil {
			t.Errorf("Acquire of what would expire in time: %v", err)
		}
	})
}

// After the reconnection, the owner also searches for names whose release the database has lost.
func TestANameIsKeptThoughItsOwnerWasCutOffWhenItWasReleased(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		also, lock := take(t, l, "also"), take(t, l, "x", leasetable.WithHoldAtLeast(time.Hour))
		p.switchTo("127.0.0.1:1") // no listener
		if err := lock.Release(t.Context()); err == nil {
			t.Error("the release was confirmed")
		}
		before := p.Connections()
		eventually(t, func() bool { return p.Connections() > before+8 }) // the pauses between the attempts to release grow
		p.switchTo(addressOf(db))
		eventually(t, func() bool { return also.Renew(t.Context()) == nil })
		eventually(t, func() bool {
			return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE lease_id IS NOT NULL") == 1
		})
		if held := mustBeHeld(t, newLocker(t, db.DB), "x"); time.Until(held.Until) < 50*time.Minute {
			t.Errorf("it is kept until %v", held.Until)
		}
	})
}
