package gocronlock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// threeMachines starts three schedulers, whose clocks differ by 40 ms, with lockers on Lockers of their own.
func threeMachines(t *testing.T, p adaptertest.Place, newLocker func(*leasetable.Locker) (gocron.Locker, error)) []*machine {
	t.Helper()
	var all []*machine
	for i := range 3 {
		locker, err := newLocker(p.Leases(t))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, newMachine(t, time.Duration(i)*40*time.Millisecond, func(m *machine) gocron.SchedulerOption {
			return gocron.WithDistributedLocker(observedLocker{locker, m})
		}))
	}
	return all
}

func TestOneOfThreeMachinesRunsEachTick(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		operator := p.Leases(t)
		all := threeMachines(t, p, func(l *leasetable.Locker) (gocron.Locker, error) { return gocronlock.NewLocker(l, time.Hour) })
		for tick := range 4 {
			if runs := ticks(t, all); runs != 1 {
				t.Errorf("tick %d ran %d times", tick, runs)
			}
			if _, err := operator.ForceRelease(t.Context(), "tick"); err != nil { // as if the hour had passed
				t.Fatal(err)
			}
		}
	})
}

// The control.
func TestWithoutAMinimumHoldEachMachineRunsEachTick(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		all := threeMachines(t, p, func(l *leasetable.Locker) (gocron.Locker, error) { return withoutHold{l}, nil })
		for tick := range 4 {
			if runs := ticks(t, all); runs != 3 {
				t.Errorf("tick %d ran %d times", tick, runs)
			}
		}
	})
}

// withoutHold is a gocron.Locker that frees the name when the job has finished.
type withoutHold struct{ leases *leasetable.Locker }

func (l withoutHold) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.leases.TryAcquire(ctx, key)
	return unlocker{lease}, err
}

type unlocker struct{ *leasetable.Lease }

func (u unlocker) Unlock(ctx context.Context) error { return u.Release(ctx) }

func TestAMinimumHoldIsRequired(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	for _, atLeast := range []time.Duration{0, -time.Second} {
		if _, err := gocronlock.NewLocker(p.Leases(t), atLeast); err == nil {
			t.Errorf("NewLocker accepts a minimum hold of %s", atLeast)
		}
	}
}

func TestAnOptionDoesNotUndoTheMinimumHold(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	locker, err := gocronlock.NewLocker(p.Leases(t), time.Hour, gocronlock.WithLock(leasetable.WithHoldAtLeast(0)))
	if err != nil {
		t.Fatal(err)
	}
	lock, err := locker.Lock(t.Context(), "tick")
	if err == nil {
		err = lock.Unlock(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Leases(t).TryAcquire(t.Context(), "tick"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("the name of a job that has run: %v", err)
	}
}

func TestOptionsThatNoLeaseHasAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	if _, err := gocronlock.NewLocker(nil, time.Hour); err == nil {
		t.Error("NewLocker accepts a nil Locker")
	}
	leases := adaptertest.At(t, sqltest.EngineSQLite, true).Leases(t)
	for _, option := range []sqllock.Option{pg.WithKey(1), leasetable.WithShared()} {
		if _, err := gocronlock.NewLocker(leases, time.Hour, gocronlock.WithLock(option)); !errors.Is(err, sqllock.ErrUnsupported) {
			t.Errorf("NewLocker: %v", err)
		}
	}
}

func TestAKeptNameBecomesFree(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		locker, err := gocronlock.NewLocker(p.Leases(t), 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			lock, err := locker.Lock(t.Context(), "tick")
			for errors.Is(err, sqllock.ErrHeld) || tookTooLong(err) {
				<-time.After(50 * time.Millisecond)
				lock, err = locker.Lock(t.Context(), "tick")
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := lock.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// tookTooLong reports whether an acquisition has taken longer than the minimum hold, as on a busy machine.
func tookTooLong(err error) bool {
	return err != nil && strings.Contains(err.Error(), "it took longer than the minimum hold")
}

// silent is a connector that never connects.
type silent struct{ driver driver.Driver }

func (c silent) Driver() driver.Driver { return c.driver }

func (c silent) Connect(ctx context.Context) (driver.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Another machine may have run the job by then, and its minimum hold have passed.
func TestAnAcquisitionThatTakesLongerThanTheMinimumHoldFails(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	leases, err := leasetable.FromConnector(silent{p.Driver()})
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	locker, err := gocronlock.NewLocker(leases, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := locker.Lock(t.Context(), "tick"); !tookTooLong(err) {
		t.Errorf("Lock: %v", err)
	}
}
