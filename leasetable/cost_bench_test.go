package leasetable_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkHeld holds 10,000 locks on one Locker. "x-one" is the time of a renewal divided by that with one lock.
// "B/lock" and "goroutines/lock" are the increase in the process.
func BenchmarkHeld(b *testing.B) {
	locks, together := 10_000, 50
	if testing.Short() {
		locks = 100
	}
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			db := startDurable(b, engine)
			lockers := make([]*leasetable.Lease, 2)
			for i, name := range []string{"one of many", "one"} {
				l, err := leasetable.FromDB(db.DB.DB, leasetable.WithTTL(time.Hour), leasetable.WithLogger(nil))
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				if i == 0 {
					bytes, goroutines := use()
					held := fill(b, l, locks, together)
					after, running := use()
					b.Logf("%s: %d locks", db.Server, len(held))
					defer runtime.KeepAlive(held)
					defer b.ReportMetric(float64(after-bytes)/float64(locks), "B/lock")
					defer b.ReportMetric(float64(running-goroutines)/float64(locks), "goroutines/lock")
				}
				lock, err := l.TryAcquire(b.Context(), name)
				if err != nil {
					b.Fatal(err)
				}
				lockers[i] = lock
			}
			var spent [2]time.Duration
			for b.Loop() {
				for i, lease := range lockers {
					began := time.Now()
					if err := lease.Renew(b.Context()); err != nil {
						b.Fatal(err)
					}
					spent[i] += time.Since(began)
				}
			}
			b.ReportMetric(0, "ns/op") // the time of both together means nothing
			b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-one")
		})
	}
}

// fill acquires this many names, some at the same time.
func fill(b *testing.B, l *leasetable.Locker, locks, together int) []*leasetable.Lease {
	b.Helper()
	held := make([]*leasetable.Lease, locks)
	var all sync.WaitGroup
	for g := range together {
		all.Go(func() {
			for i := g; i < locks; i += together {
				lock, err := l.TryAcquire(b.Context(), fmt.Sprint("lock ", i))
				if err != nil {
					b.Error(err)
					return
				}
				held[i] = lock
			}
		})
	}
	all.Wait()
	return held
}

// use returns the memory in use, including the stacks of goroutines, and the number of goroutines.
func use() (bytes int64, goroutines int) {
	for range 2 { // the first run keeps objects with a finalizer and those of a sync.Pool
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// BenchmarkKilledHolder kills the process that holds a lock with signal 9, and acquires the lock in another process.
// "ms-over-TTL" is by how much that exceeded a TTL at most.
func BenchmarkKilledHolder(b *testing.B) {
	engines, kills := []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB}, 5
	if testing.Short() {
		engines, kills = engines[:1], 1
	}
	for _, engine := range engines {
		b.Run(string(engine), func(b *testing.B) {
			db := startDurable(b, engine)
			l, err := leasetable.FromDB(db.DB.DB, leasetable.WithLogger(nil))
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			most := -holderTTL
			for done := false; b.Loop(); done = true { // once, whatever -benchtime is
				for range kills {
					if done {
						break
					}
					h := startHolder(b, db)
					h.mustHold(b)
					held := make(chan error, 1)
					go func() {
						lock, err := l.Acquire(b.Context(), "x")
						if err == nil {
							err = lock.Release(b.Context())
						}
						held <- err
					}()
					killed := time.Now()
					if err := h.cmd.Process.Kill(); err != nil {
						b.Fatal(err)
					}
					if err := <-held; err != nil {
						b.Fatal(err)
					}
					most = max(most, time.Since(killed)-holderTTL)
				}
			}
			b.ReportMetric(0, "ns/op") // not measured
			b.ReportMetric(float64(most.Milliseconds()), "ms-over-TTL")
		})
	}
}

// BenchmarkNewNames makes 16 goroutines acquire and release 10,000 names that are new to a fresh database, and then
// again. "x-again" is the time of the first round divided by that of the second.
func BenchmarkNewNames(b *testing.B) {
	names, together := 10_000, 16
	if testing.Short() {
		names = 160
	}
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			for done := false; b.Loop(); done = true { // once, whatever -benchtime is
				if done {
					continue
				}
				l, err := leasetable.FromDB(startDurable(b, engine).DB.DB, leasetable.WithLogger(nil))
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				var spent [2]time.Duration
				for round := range spent {
					began := time.Now()
					useAll(b, l, names, together)
					spent[round] = time.Since(began)
				}
				b.Logf("%v, and again %v", spent[0], spent[1])
				b.ReportMetric(0, "ns/op") // the time of both together means nothing
				b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-again")
			}
		})
	}
}

// useAll acquires and releases this many names, divided among some goroutines.
func useAll(b *testing.B, l *leasetable.Locker, names, together int) {
	b.Helper()
	var all sync.WaitGroup
	for g := range together {
		var its []string
		for i := g; i < names; i += together {
			its = append(its, fmt.Sprint("name ", i))
		}
		all.Go(func() {
			lock, err := sqllock.AcquireAll(b.Context(), l, its)
			if err == nil {
				err = lock.Release(b.Context())
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	all.Wait()
}
