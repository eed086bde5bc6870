package cronlock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/cronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/pg"
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

func TestAnOptionDoesNotUndoTheMinimumHold(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	once, err := cronlock.Once(p.Leases(t), "tick", time.Hour, cronlock.WithLock(leasetable.WithHoldAtLeast(0)))
	if err != nil {
		t.Fatal(err)
	}
	newMachine(t, once).tick(func() {})
	if _, err := p.Leases(t).TryAcquire(t.Context(), "tick"); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("the name of a job that has run: %v", err)
	}
}

func TestWhatNoLeaseHasIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	if _, err := cronlock.Once(nil, "tick", time.Hour); err == nil {
		t.Error("Once accepts a nil Locker")
	}
	leases := adaptertest.At(t, sqltest.EngineSQLite, true).Leases(t)
	if _, err := cronlock.Once(leases, "", time.Hour); !errors.Is(err, sqllock.ErrName) {
		t.Errorf("Once without a name: %v", err)
	}
	for _, option := range []sqllock.Option{pg.WithKey(1), leasetable.WithShared()} {
		if _, err := cronlock.Once(leases, "tick", time.Hour, cronlock.WithLock(option)); !errors.Is(err, sqllock.ErrUnsupported) {
			t.Errorf("Once: %v", err)
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
func run(t *testing.T, leases *leasetable.Locker, job func()) (int, *logged) {
	t.Helper()
	log, runs := new(logged), 0
	once, err := cronlock.Once(leases, "tick", time.Hour, cronlock.WithLogger(log), cronlock.WithLock(sqllock.WithTTL(20*time.Second)))
	if err != nil {
		t.Fatal(err)
	}
	newMachine(t, once).tick(func() { runs++; job() })
	return runs, log
}

func TestASkippedRunIsLogged(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		if runs, log := run(t, p.Leases(t), func() {}); runs != 1 || len(log.errors)+len(log.infos) != 0 {
			t.Errorf("the first machine ran it %d times, and logs %v, %v", runs, log.errors, log.infos)
		}
		if runs, log := run(t, p.Leases(t), func() {}); runs != 0 || len(log.errors) != 0 || len(log.infos) != 1 {
			t.Errorf("the second machine ran it %d times, and logs %v, %v", runs, log.errors, log.infos)
		}
	})
}

func TestALossIsLogged(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		operator := p.Leases(t)
		runs, log := run(t, p.Leases(t), func() {
			if _, err := operator.ForceRelease(t.Context(), "tick"); err != nil {
				t.Error(err)
			}
		})
		if runs != 1 || len(log.errors) != 1 || !errors.Is(log.errors[0], sqllock.ErrLost) {
			t.Errorf("it ran %d times, and logs %v", runs, log.errors)
		}
	})
}

func TestALossIsLoggedWhenTheJobPanics(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	log := new(logged)
	once, err := cronlock.Once(p.Leases(t), "tick", time.Hour, cronlock.WithLogger(log))
	if err != nil {
		t.Fatal(err)
	}
	panics := cron.FuncJob(func() {
		if _, err := p.Leases(t).ForceRelease(t.Context(), "tick"); err != nil {
			t.Error(err)
		}
		panic("the job")
	})
	cron.NewChain(cron.Recover(cron.DiscardLogger), once).Then(panics).Run()
	if len(log.errors) != 1 || !errors.Is(log.errors[0], sqllock.ErrLost) {
		t.Errorf("it logs %v", log.errors)
	}
}

func TestANilLoggerLogsNothing(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	once, err := cronlock.Once(p.Leases(t), "tick", time.Hour, cronlock.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	m, runs := newMachine(t, once), 0
	m.tick(func() { // its lock is lost, which is an error
		runs++
		if _, err := p.Leases(t).ForceRelease(t.Context(), "tick"); err != nil {
			t.Error(err)
		}
	})
	lock, err := p.Leases(t).TryAcquire(t.Context(), "tick")
	if err != nil {
		t.Fatal(err)
	}
	m.tick(func() { runs++ }) // skipped
	if runs != 1 {
		t.Errorf("the job ran %d times", runs)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestARunThatTheDatabasePreventsIsLogged(t *testing.T) {
	t.Parallel()
	p := adaptertest.Place{Database: sqltest.Postgres(t)} // without the lease tables
	runs, log := run(t, p.Leases(t), func() {})
	if runs != 0 || len(log.errors) != 1 || !errors.Is(log.errors[0], sqllock.ErrSchema) {
		t.Errorf("it ran %d times, and logs %v", runs, log.errors)
	}
}

func TestAJobThatPanicsReleasesTheLock(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		once, err := cronlock.Once(p.Leases(t), "tick", 3*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		panics := cron.FuncJob(func() { panic("the job") })
		cron.NewChain(cron.Recover(cron.DiscardLogger), once).Then(panics).Run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		lock, err := p.Leases(t).Acquire(ctx, "tick") // when the minimum hold has passed
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// late is a connector that says when it is asked, and connects when the test lets it.
type late struct {
	dsn    string
	driver driver.Driver
	asked  chan struct{}
	gate   chan struct{}
}

func (c late) Driver() driver.Driver { return c.driver }

func (c late) Connect(ctx context.Context) (driver.Conn, error) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	select {
	case <-c.gate:
		return c.driver.Open(c.dsn)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The connection takes so long that another machine has run the job, and its minimum hold has passed.
func TestAnAcquisitionThatTakesLongerThanTheMinimumHoldRunsNothing(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	c := late{p.DSN, p.Driver(), make(chan struct{}, 1), make(chan struct{})}
	leases, err := leasetable.FromConnector(c)
	if err != nil {
		t.Fatal(err)
	}
	defer leases.Close()
	slow := due(t, leases, 50*time.Millisecond)
	<-c.asked
	other := p.Leases(t)
	for range 2 { // the second one waits until the minimum hold of the first has passed
		lock, err := other.Acquire(t.Context(), "tick", leasetable.WithHoldAtLeast(100*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Leases(t).ForceRelease(t.Context(), "tick"); err != nil {
		t.Fatal(err)
	}
	close(c.gate)
	if got := <-slow; got.runs != 0 || len(got.log.errors) != 1 || !strings.Contains(got.log.errors[0].Error(), "minimum hold") {
		t.Errorf("the job ran %d times on the machine that is late; logged: %v", got.runs, got.log.errors)
	}
}
