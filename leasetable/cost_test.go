package leasetable_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAThousandNamesAreTakenByThreeStatements(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		counted, statements := counting(t, db)
		l := newLocker(t, counted, leasetable.WithTTL(time.Minute))
		take(t, l, "connected, and the lease is there")
		for _, what := range []string{"names that are new", "names that were released"} {
			before := statements.n.Load()
			all := takeAll(t, l, "all", 1000)
			if n := statements.n.Load() - before; n > 3 {
				t.Errorf("%s: %d statements", what, n)
			}
			mustBeHeld(t, newLocker(t, db.DB), "all 999")
			if err := all.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// takeAll takes n names at once.
func takeAll(t *testing.T, l *leasetable.Locker, prefix string, n int) sqllock.Lock {
	t.Helper()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprint(prefix, " ", i)
	}
	all, err := sqllock.AcquireAll(t.Context(), l, names)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Not parallel: it counts goroutines.
func TestTenThousandLocksAreKeptByOneStatementAndNoGoroutines(t *testing.T) { //nolint:paralleltest // see above
	for name, open := range databases { //nolint:paralleltest // see above
		t.Run(name, func(t *testing.T) {
			db := withTables(t, open(t))
			counted, statements := counting(t, db)
			type renewal struct{ locks, statements int64 }
			renewals := make(chan renewal, 1000)
			l := newLocker(t, counted, leasetable.WithTTL(4500*time.Millisecond), leasetable.WithHook(func(e sqllock.Event) {
				if e.Kind == "renewed" {
					renewals <- renewal{int64(e.Locks), statements.n.Load()}
				}
			}))
			const perBatch = 1000
			locks := 10 * perBatch
			if testing.Short() {
				locks = perBatch
			}
			take(t, l, "connected")
			goroutines := runtime.NumGoroutine()
			for i := range locks / perBatch {
				takeAll(t, l, fmt.Sprint("batch ", i), perBatch) // freed with the lease
			}
			eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+20 }) // of connections, and of the runtime
			held := statements.n.Load()
			var last renewal
			for last.statements <= held { // renewals that came before
				last = <-renewals
			}
			for range 2 {
				next := <-renewals
				if next.locks != int64(locks)+1 || next.statements != last.statements+1 {
					t.Errorf("%d statements renewed %d locks", next.statements-last.statements, next.locks)
				}
				last = next
			}
		})
	}
}
