package leasetable_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAThousandNamesAreTakenByThreeStatements(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		counted, statements := counting(t, db)
		l := newLocker(t, counted, leasetable.WithTTL(time.Hour))
		take(t, l, "connected, and the lease is there")
		for _, what := range []string{"names that are new", "names that were released"} {
			began, before := time.Now(), statements.n.Load()
			all := takeAll(t, l, "all", 1000)
			if n := statements.n.Load() - before; n > 3 && !mayRepeat(began) {
				t.Errorf("%s: %d statements", what, n)
			}
			mustBeHeld(t, newLocker(t, db.DB), "all 999")
			if err := all.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestANewNameIsTakenByTwoStatements(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		counted, statements := counting(t, db)
		l := newLocker(t, counted, leasetable.WithTTL(time.Hour))
		take(t, l, "connected, and the lease is there")
		other := newLocker(t, db.DB)
		for _, name := range []string{"new", "newer"} {
			began, before := time.Now(), statements.n.Load()
			lock := take(t, l, name)
			if n := statements.n.Load() - before; n > 2 && !mayRepeat(began) {
				t.Errorf("%d statements acquired a new name", n)
			}
			release(t, lock)
			defer release(t, take(t, other, name))
			began, before = time.Now(), statements.n.Load()
			mustBeHeld(t, l, name)
			if n := statements.n.Load() - before; n > 2 && !mayRepeat(began) {
				t.Errorf("%d statements found a known name held", n)
			}
		}
	})
}

// mayRepeat reports whether a statement since then may have been sent again, because the database did not answer it in time.
func mayRepeat(since time.Time) bool { return time.Since(since) >= dberr.AttemptTimeout }

// takeAll acquires n names at once.
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

func TestTenThousandLocksAreKeptByOneStatementAndNoGoroutines(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		// Goroutines inherit the labels of the goroutine that started them.
		pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels("test", t.Name())))
		counted, statements := counting(t, db)
		renewed := make(chan int, 1)
		l := newLocker(t, counted, leasetable.WithTTL(time.Hour), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Renewed {
				renewed <- e.Locks
			}
		}))
		const perBatch = 1000
		locks := 10_000
		if db.Engine != sqltest.EngineSQLite {
			locks = 2000 // the renewal knows nothing of them: no statement differs
		}
		lease := take(t, l, "connected")
		goroutines := goroutinesOf(t)
		for i := range locks / perBatch {
			takeAll(t, l, fmt.Sprint("batch ", i), perBatch) // released when the lease ends
		}
		eventually(t, func() bool { return goroutinesOf(t) <= goroutines+20 }) // those of connections
		for range 3 {
			var before int64
			if err := insist(bounded(t), func() error {
				before = statements.n.Load()
				return lease.Renew(t.Context())
			}); err != nil {
				t.Fatal(err)
			}
			if n, sent := <-renewed, statements.n.Load()-before; n != locks+1 || sent != 1 {
				t.Errorf("%d statements renewed %d locks", sent, n)
			}
		}
	})
}

// goroutinesOf counts the goroutines with the label of a test.
func goroutinesOf(t *testing.T) (n int) {
	t.Helper()
	var profile bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
		t.Fatal(err)
	}
	same := 0 // the profile prints the count before the labels
	label := fmt.Sprintf("%q:%q", "test", t.Name())
	for line := range strings.Lines(profile.String()) {
		if count, _, ok := strings.Cut(line, " @ "); ok {
			same, _ = strconv.Atoi(count)
		} else if strings.HasPrefix(line, "# labels: ") && strings.Contains(line, label) {
			n += same
		}
	}
	return n
}
