package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// A session is pinged when it was idle for 5 s: within a minute heartbeats could tell of twelve losses, one after the other.
func TestTheEndOfASessionIsToldBeforeAHeartbeatIsDue(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	const within = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	for round := range 15 {
		lock := mustAcquire(t, l, "a")
		terminate(t, db, "a")
		select {
		case <-lock.Context().Done():
		case <-ctx.Done():
			t.Fatalf("%d losses were told within %v", round, within)
		}
		mustBeLost(t, lock)
	}
}
