package leasetable_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// A guard has the row of its name locked, for as long as the transaction lasts. Who waits for such names keeps
// nobody in the process from other ones.
func TestWaitingForGuardedNamesKeepsNoConnection(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		holder, waiter := newLocker(t, db.DB), newLocker(t, db.DB)
		ctx, cancel := context.WithCancel(t.Context())
		var waiters sync.WaitGroup
		defer waiters.Wait()
		defer cancel()
		for i := range 12 { // a Locker has four connections
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
		began := time.Now()
		for time.Since(began) < 3*time.Second { // what waits for a row does so for two
			at := time.Now()
			if err := take(t, waiter, "free").Release(t.Context()); err != nil {
				t.Error(err)
			}
			if took := time.Since(at); took > 1500*time.Millisecond {
				t.Errorf("a free name was taken and released in %v", took)
			}
		}
	})
}
