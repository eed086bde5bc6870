package leasetable_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	suspended "github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/sqltest"
)

// These tests simulate a suspension of the machine for all tests, so no other test may run at the same time.

// I5.
func TestALeaseIsOverAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.SQLite(t))
	lease := take(t, newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), "x")
	suspended.Pretend(40 * time.Minute)
	if left := lease.Remaining(); left > 10*time.Minute || left == 0 {
		t.Errorf("40 minutes after it was taken it has %v left", left)
	}
	suspended.Pretend(30 * time.Minute)
	if cause := await(t, lease); !errors.Is(cause, sqllock.ErrExpired) {
		t.Errorf("the holder was told %v", cause)
	}
}

// The timer of the renewals stands still during a suspension, and the deadline does not.
func TestARenewalIsSentSoonAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		lease := take(t, keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithTTL(time.Hour)), "x")
		suspended.Pretend(25 * time.Minute)
		pass(2 * time.Second)
		if left := lease.Remaining(); left < 45*time.Minute {
			t.Errorf("two seconds after a suspension it has %v left: it was not renewed", left)
		}
		release(t, lease)
	})
}
