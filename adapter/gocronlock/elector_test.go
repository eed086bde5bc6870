package gocronlock_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func newElector(t *testing.T, p adaptertest.Place) *gocronlock.Elector {
	t.Helper()
	e, err := gocronlock.NewElector(p.Leases(t), "the scheduler")
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// until waits until a condition is met, which has no event.
func until(t *testing.T, what string, met func() bool) {
	t.Helper()
	deadline := time.After(time.Minute)
	for !met() {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// observedElector tells the machine when a run was skipped.
type observedElector struct {
	gocron.Elector
	m *machine
}

func (o observedElector) IsLeader(ctx context.Context) error {
	err := o.Elector.IsLeader(ctx)
	if err != nil {
		o.m.done <- struct{}{}
	}
	return err
}

func TestTheLeaderRunsEachTick(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		var all []*machine
		var electors []*gocronlock.Elector
		for i := range 3 {
			e := newElector(t, p)
			electors = append(electors, e)
			all = append(all, newMachine(t, time.Duration(i)*40*time.Millisecond, func(m *machine) gocron.SchedulerOption {
				m.after = func() { m.done <- struct{}{} }
				return gocron.WithDistributedElector(observedElector{e, m})
			}))
		}
		leader := func() int {
			return slices.IndexFunc(electors, func(e *gocronlock.Elector) bool { return e.IsLeader(t.Context()) == nil })
		}
		for range 3 {
			until(t, "there is a leader", func() bool { return leader() >= 0 })
			led := leader()
			for range 2 {
				before := all[led].runs.Load()
				if runs := ticks(t, all); runs != 1 || all[led].runs.Load() != before+1 {
					t.Errorf("a tick ran %d times, and %d times on the leader", runs, all[led].runs.Load()-before)
				}
			}
			if err := electors[led].Close(); err != nil {
				t.Errorf("Close of the leader: %v", err)
			}
			if err := electors[led].IsLeader(t.Context()); !errors.Is(err, gocronlock.ErrNotLeader) {
				t.Errorf("after its Close it leads: %v", err)
			}
		}
	})
}

func TestCloseOfACandidateIsNoError(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		lease, err := p.Leases(t).TryAcquire(t.Context(), "the scheduler")
		if err != nil {
			t.Fatal(err)
		}
		e := newElector(t, p)
		if err := e.IsLeader(t.Context()); !errors.Is(err, gocronlock.ErrNotLeader) {
			t.Errorf("beside a leader: %v", err)
		}
		if err := errors.Join(e.Close(), e.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestACampaignThatFailsBeginsAgain(t *testing.T) {
	t.Parallel()
	p := adaptertest.Place{Database: sqltest.Postgres(t)} // without the lease tables
	e := newElector(t, p)
	until(t, "the campaign has failed", func() bool { return errors.Is(e.IsLeader(t.Context()), sqllock.ErrSchema) })
	if err := schema.Apply(t.Context(), p.DB.DB, schema.Postgres, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	until(t, "it leads", func() bool { return e.IsLeader(t.Context()) == nil })
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

func TestACampaignWhoseHookEndsItsGoroutineBeginsAgain(t *testing.T) {
	t.Parallel()
	var ended atomic.Bool
	leases := adaptertest.At(t, sqltest.EngineSQLite, true).Leases(t, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Acquired && ended.CompareAndSwap(false, true) {
			runtime.Goexit()
		}
	}))
	e, err := gocronlock.NewElector(leases, "the scheduler")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "it leads", func() bool { return e.IsLeader(t.Context()) == nil })
	if err := e.Close(); err != nil || !ended.Load() {
		t.Errorf("Close: %v", err)
	}
}

func TestACampaignEndsWithItsLocker(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	leases := p.Leases(t)
	e, err := gocronlock.NewElector(leases, "the scheduler")
	if err != nil {
		t.Fatal(err)
	}
	if err := leases.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "it knows", func() bool { return errors.Is(e.IsLeader(t.Context()), sqllock.ErrClosed) })
	if err := e.Close(); !errors.Is(err, sqllock.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

func TestAnElectorNeedsAName(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	if _, err := gocronlock.NewElector(p.Leases(t), ""); !errors.Is(err, sqllock.ErrName) {
		t.Errorf("without a name: %v", err)
	}
}

func TestOptionsOfAcquisitions(t *testing.T) {
	t.Parallel()
	leases := adaptertest.At(t, sqltest.EngineSQLite, true).Leases(t)
	short := gocronlock.WithLock(sqllock.WithTTL(time.Millisecond))
	if _, err := gocronlock.NewElector(leases, "the scheduler", short); err == nil {
		t.Error("the TTL of an Elector is not used")
	}
	locker, err := gocronlock.NewLocker(leases, time.Hour, short)
	if err == nil {
		_, err = locker.Lock(t.Context(), "tick")
	}
	if err == nil {
		t.Error("the TTL of a Locker is not used")
	}
}
