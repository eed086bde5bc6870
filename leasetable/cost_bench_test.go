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

// BenchmarkHeld holds 10,000 locks on one Locker. "x-one" is how many times as long a renewal takes as with one
// lock; "B/lock" and "goroutines/lock" are what the process has more.
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
				l, err := leasetable.FromDB(db.DB.DB, leasetable.WithTTL(time.Hour))
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
			b.ReportMetric(0, "ns/op") // of both together; says nothing
			b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-one")
		})
	}
}

// fill takes so many names, some at the same time.
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

// use is what the process uses: bytes, of goroutines too, and goroutines.
func use() (bytes int64, goroutines int) {
	for range 2 { // the first leaves what has a finalizer, and what was in a sync.Pool
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}

// BenchmarkKilledHolder kills the process that holds a lock, with signal 9, and takes the lock in another
// one. "ms-over-TTL" is how much longer than a TTL that took at most.
func BenchmarkKilledHolder(b *testing.B) {
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			db := startDurable(b, engine)
			l, err := leasetable.FromDB(db.DB.DB)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			kills := 5
			if testing.Short() {
				kills = 1
			}
			most := -holderTTL
			for done := false; b.Loop(); done = true { // once, whatever -benchtime is
				for range kills {
					if done {
						break
					}
					h := startHolder(b, db)
					h.line(b)
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
			b.ReportMetric(0, "ns/op") // not what was measured
			b.ReportMetric(float64(most.Milliseconds()), "ms-over-TTL")
		})
	}
}

// BenchmarkNewNames has 16 goroutines take and free 10,000 names that are new to a fresh database, and then again. "x-again" is how many times
// as long the first round takes.
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
				l, err := leasetable.FromDB(startDurable(b, engine).DB.DB)
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
				b.ReportMetric(0, "ns/op") // of both together; says nothing
				b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-again")
			}
		})
	}
}

// useAll takes and frees so many names, each of some goroutines its own, all at once.
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
