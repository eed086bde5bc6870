package locktest

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Bare is one connection of the bare driver, with the statements that a user would write without this library, as
// efficient as possible. Each method fails if the server refuses.
type Bare interface {
	Try(ctx context.Context, name string) error  // acquires a free lock
	Wait(ctx context.Context, name string) error // waits in the server's queue
	Unlock(ctx context.Context, name string) error
}

// Bench is what the benchmarks need from a backend. They report ratios to the bare driver in the same run, and counts.
// No value makes them fail.
type Bench struct {
	// Locker opens another Locker on the database, and closes it when b ends.
	Locker func(b *testing.B) Locker

	// Bare opens a connection, which is closed when b ends.
	Bare func(b *testing.B) Bare

	// Queue opens a connection whose Wait waits in the server's own queue; nil: use Bare.
	Queue func(b *testing.B) Bare

	// Child returns environment variables that make the test program a child process. It opens a Locker of its own and
	// does the job with it. If Child is nil, the benchmarks that need another process are left out.
	Child func(job Job) []string

	Observer // nil: no counts, and no benchmarks of session locks
}

// Observer queries the server. It is not called concurrently, and does not count itself.
type Observer interface {
	Connections(ctx context.Context) (int, error) // the connections of Lockers in all processes
	Waiting(ctx context.Context) (int, error)     // the connections that wait for a lock
	// Statements counts all statements ever sent to the database. No Locker is open while it is called.
	Statements(ctx context.Context) (int, error)
}

// Run runs every benchmark. A benchmark with a fixed duration runs once, whatever -benchtime is.
func (o Bench) Run(b *testing.B) {
	o.RunFree(b)
	b.Run("Handoff64Waiters", o.handoff)
	if o.Child != nil {
		b.Run("Handoff8Processes", o.processes)
	}
	if o.Observer == nil {
		return
	}
	b.Run("KilledHolder", o.killed)
	b.Run("5000Held", o.held)
}

// RunFree runs the benchmarks without waiters.
func (o Bench) RunFree(b *testing.B) {
	b.Run("AcquireRelease", o.pair)
	b.Run("16Names", func(b *testing.B) { o.names(b, 16) })
	b.Run("256Names", func(b *testing.B) { o.names(b, 256) })
}

// pair acquires and releases a free lock repeatedly. "x-bare" is its time divided by that of the bare statements.
func (o Bench) pair(b *testing.B) {
	v := versus{pairOf(b, o.Locker(b), "locker"), barePair(b, o.Bare(b), "bare")}
	var spent [2]time.Duration
	rounds := 0
	for b.Loop() {
		v.round(b, &spent)
		rounds += batch
	}
	b.ReportMetric(0, "ns/op") // the time of all batches together means nothing
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(rounds), "ns/locker")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(rounds), "ns/bare")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-bare")
}

// names acquires and releases n free locks on one Locker, with one goroutine each. "x-16-bare" is its rate divided by
// that of 16 goroutines with a bare connection each. "conns" is the largest observed number of the Locker's
// connections.
func (o Bench) names(b *testing.B, n int) {
	const pinned = 16
	l := o.Locker(b)
	ours, bare := make([]func() error, n), make([]func() error, pinned)
	for i := range ours {
		ours[i] = pairOf(b, l, fmt.Sprint("locker ", i))
	}
	for i := range bare {
		bare[i] = barePair(b, o.Bare(b), fmt.Sprint("bare ", i))
	}
	once(b, func() {
		peak := o.watch(b)
		rate(b, ours) // opens the connections
		rate(b, bare)
		var perSecond [2]float64
		for range turns {
			perSecond[0] += rate(b, ours) / turns
			perSecond[1] += rate(b, bare) / turns
		}
		o.counted(b, peak(), "conns")
		b.ReportMetric(perSecond[0], "pairs/s")
		b.ReportMetric(perSecond[0]/perSecond[1], "x-16-bare")
	})
}

// held holds 5,000 locks on one Locker. "x-empty" is the time of another pair on it, divided by that on a Locker that
// holds nothing. "B/lock" and "goroutines/lock" are the increase over a Locker that is connected and holds nothing.
func (o Bench) held(b *testing.B) {
	const locks, goroutines = 5000, 50
	full, empty := o.Locker(b), o.Locker(b)
	v := versus{pairOf(b, full, "one more"), pairOf(b, empty, "only one")}
	names, held := make([]string, locks), make([]sqllock.Lock, locks)
	for i := range names {
		names[i] = fmt.Sprint("lock ", i)
	}
	once(b, func() {
		if err := v[0](); err != nil { // opens a connection; the other Locker has none yet
			b.Fatal(err)
		}
		peak := o.watch(b)
		bytes, running := inUse(), runtime.NumGoroutine()
		began := time.Now()
		inEach(b, goroutines, func(i int) (err error) {
			for ; i < locks && err == nil; i += goroutines {
				held[i], err = full.TryAcquire(b.Context(), names[i])
			}
			return err
		})
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-take")
		b.ReportMetric(float64(inUse()-bytes)/locks, "B/lock")
		b.ReportMetric(float64(runtime.NumGoroutine()-running)/locks, "goroutines/lock")
		o.counted(b, peak(), "conns")

		var spent [2]time.Duration
		v.round(b, &spent) // opens the other connection
		spent = [2]time.Duration{}
		for range 30 {
			v.round(b, &spent)
		}
		b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-empty")
		for _, lock := range held {
			if lock.Context().Err() != nil {
				b.Fatalf("%s: %v", lock.Name(), context.Cause(lock.Context()))
			}
		}
	})
}

func pairOf(b *testing.B, l Locker, name string) func() error {
	return func() error {
		lock, err := l.TryAcquire(b.Context(), name)
		if err != nil {
			return err
		}
		return lock.Release(b.Context())
	}
}

func barePair(b *testing.B, bare Bare, name string) func() error {
	return func() error {
		if err := bare.Try(b.Context(), name); err != nil {
			return err
		}
		return bare.Unlock(b.Context(), name)
	}
}

// counted reports a count of the Observer, if there is one.
func (o Bench) counted(b *testing.B, n float64, unit string) {
	b.Helper()
	if o.Observer != nil {
		b.ReportMetric(n, unit)
	}
}

// watch counts the connections of the Lockers periodically until the returned function is called, which returns the
// maximum.
func (o Bench) watch(b *testing.B) (peak func() float64) {
	b.Helper()
	if o.Observer == nil {
		return func() float64 { return 0 }
	}
	most := 0
	look := func() error {
		n, err := o.Connections(b.Context())
		most = max(most, n)
		return err
	}
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		tick := time.NewTicker(window() / 20)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := look(); err != nil {
					done <- err
					return
				}
			case <-stop:
				done <- look()
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		return float64(most)
	}
}
