package gocronlock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"
)

// machine is a scheduler with a clock of its own and a job that is due every second.
type machine struct {
	clock *clockwork.FakeClock
	done  chan struct{} // gets a value when a run has ended, or was skipped
	runs  atomic.Int64
	after func() // what the job does at its end, if it is not nil
}

// newMachine starts the scheduler of a machine whose clock is late. The option makes it distributed.
func newMachine(t *testing.T, late time.Duration, option func(m *machine) gocron.SchedulerOption) *machine {
	t.Helper()
	noon := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	m := &machine{clock: clockwork.NewFakeClockAt(noon.Add(-late)), done: make(chan struct{}, 10)}
	s, err := gocron.NewScheduler(gocron.WithClock(m.clock), option(m))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
	job := func() {
		m.runs.Add(1)
		if m.after != nil {
			m.after()
		}
	}
	_, err = s.NewJob(gocron.DurationJob(time.Second), gocron.NewTask(job), gocron.WithName("tick"))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	return m
}

// tick lets a second pass on the machine's clock, and waits until its job has run or was skipped. It lets one more
// millisecond pass: a skipped job may run again, over and over, while the clock stands at the very time when it was due.
func (m *machine) tick(t *testing.T) {
	t.Helper()
	if err := m.clock.BlockUntilContext(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	m.clock.Advance(time.Second + time.Millisecond)
	<-m.done
}

// ticks lets a second pass on all machines, one after the other, and returns how often the job has run.
func ticks(t *testing.T, all []*machine) (runs int64) {
	t.Helper()
	for _, m := range all {
		before := m.runs.Load()
		m.tick(t)
		runs += m.runs.Load() - before
	}
	return runs
}

// observedLocker tells the machine when a run is over or was skipped.
type observedLocker struct {
	gocron.Locker
	m *machine
}

func (o observedLocker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lock, err := o.Locker.Lock(ctx, key)
	if err != nil {
		o.m.done <- struct{}{}
		return nil, err
	}
	return observedLock{lock, o.m}, nil
}

type observedLock struct {
	gocron.Lock
	m *machine
}

func (o observedLock) Unlock(ctx context.Context) error {
	err := o.Lock.Unlock(ctx)
	o.m.done <- struct{}{}
	return err
}
