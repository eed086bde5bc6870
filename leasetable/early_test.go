package leasetable_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Who gives up early has its turn while the release of the name is on its way, and finds the name held by a lease that
// lasts for longer than it may wait. It does not give up: the turn came because the name becomes free.
func TestWhoGivesUpEarlyWaitsForAReleaseThatIsUnderWay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		long := leasetable.WithTTL(15 * time.Second) // than a slice of a wait
		server := memory.NewServer(memory.Postgres)
		first, early := keep(t, server.Store(), long), keep(t, server.Store(), long)
		s := &scripted{Store: server.Store()}
		s.release = func(ctx context.Context, req *store.Request) (store.Result, error) {
			time.Sleep(10 * time.Microsecond) //nolint:forbidigo // of virtual time
			return s.Store.Release(ctx, req)
		}
		second := keep(t, s, long)

		lock := take(t, first, "x")
		next := acquiring(second, "x")
		eventually(t, func() bool { return leasetable.HasTurn(second, "x") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := make(chan error)
		go func() {
			_, err := early.Acquire(ctx, "x", leasetable.WithGiveUpEarly())
			got <- err
		}()
		synctest.Wait()
		release(t, lock)
		lock = <-next // with its turn, which the other one stands for
		if lock == nil {
			t.Fatal("the waiter failed")
		}
		if err := lock.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		release(t, lock)
		if err := <-got; err != nil {
			t.Error(err)
		}
	})
}
