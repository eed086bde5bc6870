package pg_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// The test simulates a suspension of the machine for all tests, so no other test may run at the same time.
func TestASessionIsOverAfterASuspensionOfTheMachine(t *testing.T) { //nolint:paralleltest // see above
	locktest.OncePerEngine(t)
	lock := mustTry(t, newLocker(t, sqltest.Postgres(t), pg.WithSessionTTL(time.Hour), pg.WithHeartbeat(10*time.Minute)), "x")
	clock.Pretend(time.Hour)
	select {
	case <-lock.Context().Done():
	case <-time.After(time.Minute):
		t.Fatal("the holder was not told")
	}
	if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
		t.Errorf("the holder was told %v", cause)
	}
}
