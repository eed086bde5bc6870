package gocronlock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapter/gocronlock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// locking begins to lock the job "tick". The channel gets a nil error when it was locked and unlocked.
func locking(ctx context.Context, t *testing.T, leases *leasetable.Locker, atLeast time.Duration) <-chan error {
	t.Helper()
	locker, err := gocronlock.NewLocker(leases, atLeast, gocronlock.WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() {
		lock, err := locker.Lock(ctx, "tick")
		if err == nil {
			err = lock.Unlock(context.WithoutCancel(ctx))
		}
		over <- err
	}()
	return over
}

// next waits for the error of an attempt. It ends the test if there are no more attempts.
func next(t *testing.T, failed <-chan error, over <-chan error) error {
	t.Helper()
	select {
	case err := <-failed:
		return err
	case got := <-over:
		t.Fatalf("there was no other attempt: %v", got)
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
		over := locking(t.Context(), t, leases, time.Hour)
		for range 3 {
			_ = next(t, failed, over)
		}
		network.Heal()
		if err := <-over; err != nil {
			t.Error(err)
		}
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
	over := locking(t.Context(), t, leases, time.Hour)
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
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAJobThatIsRemovedIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EnginePostgres, true)
	leases, network, failed := p.Far(t)
	network.Refuse()
	ctx, cancel := context.WithCancel(t.Context())
	over := locking(ctx, t, leases, time.Hour)
	_ = next(t, failed, over)
	cancel()
	if err := <-over; err == nil {
		t.Error("it was locked")
	}
}

// away is a connector to a database that cannot be reached.
type away struct{ driver driver.Driver }

func (a away) Driver() driver.Driver { return a.driver }

func (a away) Connect(context.Context) (driver.Conn, error) {
	return nil, errors.New("connection refused")
}

func TestAJobIsSkippedWhenHalfOfTheMinimumHoldHasPassed(t *testing.T) {
	t.Parallel()
	p := adaptertest.At(t, sqltest.EngineSQLite, true)
	synctest.Test(t, func(t *testing.T) {
		leases, err := leasetable.FromConnector(away{p.Driver()})
		if err != nil {
			t.Fatal(err)
		}
		defer leases.Close()
		began := time.Now()
		err = <-locking(t.Context(), t, leases, time.Minute)
		if took := time.Since(began); took > 30*time.Second || took < 28*time.Second {
			t.Errorf("it was tried for %s", took)
		}
		if !sqllock.IsRetryable(err) {
			t.Error(err)
		}
	})
}
