package leasetable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// A guard locks the row of its name until its transaction ends. Waiters for such names must not take the connections
// that other acquisitions of the process need.
func TestWaitingForGuardedNamesKeepsNoConnection(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		holder, waiter := newLocker(t, db.DB), newLocker(t, db.DB)
		ctx, cancel := context.WithCancel(t.Context())
		var waiters sync.WaitGroup
		defer waiters.Wait()
		defer cancel()
		for i := range 12 { // a Locker has six connections
			name := fmt.Sprint("guarded ", i)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback() })
			if err := take(t, holder, name).Guard(t.Context(), leasetable.SQLTx(tx)); err != nil {
				t.Fatal(err)
			}
			waiters.Go(func() { _, _ = waiter.Acquire(ctx, name) })
			eventually(t, func() bool { return leasetable.Waits(waiter, name) })
		}
		// A statement waits for a locked row for two seconds. If such statements took all connections, fifty pairs
		// would take minutes.
		within, done := context.WithTimeout(t.Context(), time.Minute)
		defer done()
		began := time.Now()
		for pairs := 0; pairs < 50 || time.Since(began) < 3*time.Second; pairs++ {
			lock, err := waiter.Acquire(within, "free")
			if err != nil {
				t.Fatalf("after %d pairs: %v", pairs, err)
			}
			release(t, lock)
		}
	})
}
