package cronlock_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/cronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// machine is a cron whose job is due when the test says so.
type machine struct {
	cron *cron.Cron
	once cron.JobWrapper
}

func newMachine(t *testing.T, once cron.JobWrapper) machine {
	t.Helper()
	m := machine{cron.New(cron.WithLogger(cron.DiscardLogger)), once}
	m.cron.Start()
	t.Cleanup(func() { <-m.cron.Stop().Done() })
	return m
}

// tick lets the job be due, and waits until it has run or was skipped.
func (m machine) tick(job func()) {
	over := make(chan struct{})
	tell := func(job cron.Job) cron.Job {
		return cron.FuncJob(func() { defer close(over); job.Run() })
	}
	m.cron.Schedule(&now{}, cron.NewChain(tell, m.once).Then(cron.FuncJob(job)))
	<-over
}

// now is a schedule with one run, at once.
type now struct{ past bool }

func (n *now) Next(t time.Time) time.Time {
	if n.past {
		return time.Time{} // never
	}
	n.past = true
	return t
}

// ticks lets a job of a millisecond be due on all machines, one after the other, and returns how often it has run.
func ticks(all []machine) (runs int) {
	for _, m := range all {
		m.tick(func() { runs++; <-time.After(time.Millisecond) })
	}
	return runs
}

func TestOneOfThreeMachinesRunsEachTick(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		operator := p.Leases(t)
		var all []machine
		for range 3 {
			once, err := cronlock.Once(p.Leases(t), "tick", time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, newMachine(t, once))
		}
		for tick := range 4 {
			if runs := ticks(all); runs != 1 {
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
		var all []machine
		for range 3 {
			leases := p.Leases(t)
			all = append(all, newMachine(t, func(job cron.Job) cron.Job {
				return cron.FuncJob(func() {
					_, err := sqllock.TryDo(context.Background(), leases, "tick", func(context.Context) error { job.Run(); return nil })
					if err != nil {
						t.Error(err)
					}
				})
			}))
		}
		for tick := range 4 {
			if runs := ticks(all); runs != 3 {
				t.Errorf("tick %d ran %d times", tick, runs)
			}
		}
	})
}

func TestAMinimumHoldIsRequired(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	for _, atLeast := range []time.Duration{0, -time.Second} {
		if _, err := cronlock.Once(p.Leases(t), "tick", atLeast); err == nil {
			t.Errorf("Once accepts a minimum hold of %s", atLeast)
		}
	}
}

// logged is a cron.Logger that keeps what it gets.
type logged struct {
	mu     sync.Mutex
	infos  []string
	errors []error
}

func (l *logged) Info(msg string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.infos = append(l.infos, msg)
}

func (l *logged) Error(err error, _ string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, err)
}

// run runs a job once, and returns how often it ran and what was logged.
func run(t *testing.T, leases *leasetable.Locker, atLeast time.Duration, job func()) (int, *logged) {
	t.Helper()
	log, runs := new(logged), 0
	once, err := cronlock.Once(leases, "tick", atLeast, cronlock.WithLogger(log), cronlock.WithLock(sqllock.WithTTL(20*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	newMachine(t, once).tick(func() { runs++; job() })
	return runs, log
}

func TestASkippedRunIsLogged(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		if runs, log := run(t, p.Leases(t), time.Hour, func() {}); runs != 1 || len(log.errors)+len(log.infos) != 0 {
			t.Errorf("the first machine ran it %d times, and logs %v, %v", runs, log.errors, log.infos)
		}
		if runs, log := run(t, p.Leases(t), time.Hour, func() {}); runs != 0 || len(log.errors) != 0 || len(log.infos) != 1 {
			t.Errorf("the second machine ran it %d times, and logs %v, %v", runs, log.errors, log.infos)
		}
	})
}

func TestALossIsLogged(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		operator := p.Leases(t)
		runs, log := run(t, p.Leases(t), time.Hour, func() {
			if _, err := operator.ForceRelease(t.Context(), "tick"); err != nil {
				t.Error(err)
			}
		})
		if runs != 1 || len(log.errors) != 1 || !errors.Is(log.errors[0], sqllock.ErrLost) {
			t.Errorf("it ran %d times, and logs %v", runs, log.errors)
		}
	})
}

func TestARunThatTheDatabasePreventsIsLogged(t *testing.T) {
	t.Parallel()
	p := adaptertest.Place{Database: sqltest.Postgres(t)} // without the lease tables
	runs, log := run(t, p.Leases(t), time.Hour, func() {})
	if runs != 0 || len(log.errors) != 1 || !errors.Is(log.errors[0], sqllock.ErrSchema) {
		t.Errorf("it ran %d times, and logs %v", runs, log.errors)
	}
}

func TestAJobThatPanicsReleasesTheLock(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		once, err := cronlock.Once(p.Leases(t), "tick", time.Nanosecond)
		if err != nil {
			t.Fatal(err)
		}
		panics := cron.FuncJob(func() { panic("the job") })
		cron.NewChain(cron.Recover(cron.DiscardLogger), once).Then(panics).Run()
		if runs, log := run(t, p.Leases(t), time.Nanosecond, func() {}); runs != 1 {
			t.Errorf("the next run, on another machine: %d, %v", runs, log.infos)
		}
	})
}
