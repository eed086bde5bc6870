package gocronlock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
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

func TestAKeptNameBecomesFree(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		locker, err := gocronlock.NewLocker(p.Leases(t), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			lock, err := locker.Lock(t.Context(), "tick")
			for errors.Is(err, sqllock.ErrHeld) {
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
