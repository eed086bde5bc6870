package cronlock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/cronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// due lets a job be due, and returns how often it ran and what was logged.
func due(t *testing.T, leases *leasetable.Locker, atLeast time.Duration) <-chan outcome {
	t.Helper()
	log := new(logged)
	once, err := cronlock.Once(leases, "tick", atLeast, cronlock.WithLogger(log))
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan outcome, 1)
	go func() {
		runs := 0
		once(cron.FuncJob(func() { runs++ })).Run()
		over <- outcome{runs, log}
	}()
	return over
}

type outcome struct {
	runs int
	log  *logged
}

func (o outcome) mustHaveRun(t *testing.T) {
	t.Helper()
	if o.runs != 1 || len(o.log.errors)+len(o.log.infos) != 0 {
		t.Errorf("the job ran %d times; logged: %v, %v", o.runs, o.log.errors, o.log.infos)
	}
}

// next waits for the error of an attempt. It ends the test if there are no more attempts.
func next(t *testing.T, failed <-chan error, over <-chan outcome) error {
	t.Helper()
	select {
	case err := <-failed:
		return err
	case <-over:
		t.Fatal("there was no other attempt")
		return nil
	}
}

func TestAJobRunsThoughTheDatabaseIsAwayWhenItIsDue(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		if p.Engine == sqltest.EngineSQLite {
			return // there is no network
		}
		leases, network, failed := p.Far(t)
		network.Refuse()
		over := due(t, leases, time.Hour)
		for range 3 {
			_ = next(t, failed, over)
		}
		network.Heal()
		(<-over).mustHaveRun(t)
	})
}

// The first attempt has the name, and does not know it. Its lease lives on, as it has another lock. A transaction keeps the
// Locker from giving the name back before the second attempt.
func TestAJobRunsThoughTheFirstAnswerIsLost(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	leases, network, failed := p.Far(t)
	other, err := leases.TryAcquire(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	answer := network.HoldAnswer("INSERT INTO sqllock_lock")
	over := due(t, leases, time.Hour)
	<-answer.Answered()
	tx, err := p.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(t.Context(), "SELECT FROM sqllock_lock WHERE name = 'tick' FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	answer.Drop()
	if err := next(t, failed, over); errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("the first attempt: %v", err)
	}
	if err := next(t, failed, over); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("the second attempt: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	(<-over).mustHaveRun(t)
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// away is a connector to a database that cannot be reached.
type away struct {
	driver driver.Driver
	asked  atomic.Int64
}

func (a *away) Driver() driver.Driver { return a.driver }

func (a *away) Connect(context.Context) (driver.Conn, error) {
	a.asked.Add(1)
	return nil, errors.New("connection refused")
}

func TestAJobIsSkippedWhenHalfOfTheMinimumHoldHasPassed(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	synctest.Test(t, func(t *testing.T) {
		c := &away{driver: p.Driver()}
		leases, err := leasetable.FromConnector(c)
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Close()
		began := time.Now()
		got := <-due(t, leases, time.Minute)
		if took := time.Since(began); took > 30*time.Second || took < 28*time.Second {
			t.Errorf("it was tried for %s", took)
		}
		if got.runs != 0 || len(got.log.errors) != 1 || !sqllock.IsRetryable(got.log.errors[0]) {
			t.Errorf("the job ran %d times; logged: %v", got.runs, got.log.errors)
		}
		if n := c.asked.Load(); n < 20 || n > 100 {
			t.Errorf("it was tried %d times", n)
		}
	})
}
