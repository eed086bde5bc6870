package locktest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Bare is one connection of the bare driver, with the statements on it that its user would
// write without this library, as good as they can be written. Each fails if the answer is no.
type Bare interface {
	Try(ctx context.Context, name string) error  // takes a free lock
	Wait(ctx context.Context, name string) error // waits in the server's queue
	Unlock(ctx context.Context, name string) error
}

// Bench is what the benchmarks need to know of a backend. What they print are ratios to the
// bare driver in the same run, and counts; none of it fails.
type Bench struct {
	// Locker opens another Locker on the database, and closes it when b ends.
	Locker func(b *testing.B) Locker

	// Bare opens a connection, which is closed when b ends.
	Bare func(b *testing.B) Bare

	// Queue opens a connection whose Wait stands in the server's own queue; nil: Bare does.
	Queue func(b *testing.B) Bare

	// Child is the environment that makes the test program a process that opens a Locker of its
	// own, and with it does a job. Without it nothing is measured that takes another process.
	Child func(job Job) []string

	Observer // nil: nothing is counted, and nothing is measured that is for session locks
}

// Observer asks the server. It is not called concurrently, and does not count itself.
type Observer interface {
	Connections(ctx context.Context) (int, error) // those of Lockers, of any process
	Waiting(ctx context.Context) (int, error)     // connections that wait for a lock
	// Statements counts those that were ever sent to the database. While it is called no
	// Locker is open.
	Statements(ctx context.Context) (int, error)
}

// Run runs every benchmark. Those that run for a time of their own do so once, whatever
// -benchtime is.
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

// RunFree runs those benchmarks in which nobody waits.
func (o Bench) RunFree(b *testing.B) {
	b.Run("AcquireRelease", o.pair)
	b.Run("16Names", func(b *testing.B) { o.names(b, 16) })
	b.Run("256Names", func(b *testing.B) { o.names(b, 256) })
}

// pair takes and releases a free lock, again and again. "x-bare" is how many times as long as
// the bare statements that takes.
func (o Bench) pair(b *testing.B) {
	v := versus{pairOf(b, o.Locker(b), "locker"), barePair(b, o.Bare(b), "bare")}
	var spent [2]time.Duration
	rounds := 0
	for b.Loop() {
		v.round(b, &spent)
		rounds += batch
	}
	b.ReportMetric(0, "ns/op") // of all batches together; says nothing
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(rounds), "ns/locker")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(rounds), "ns/bare")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-bare")
}

// names takes and releases n free locks with one goroutine each, on one Locker. "x-16-bare" is
// how many times as many pairs it gets through as 16 goroutines do that have a connection each;
// "conns" is the most connections that the Locker was seen to have.
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
		rate(b, ours) // opens connections
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

// held holds 5,000 locks on one Locker. "x-empty" is how many times as long another pair takes
// on it as on a Locker that holds nothing. "B/lock" and "goroutines/lock" are what the process
// has more than with the Locker empty and connected.
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

// inUse is the memory that is in use, of goroutines too.
func inUse() int64 {
	var m runtime.MemStats
	for range 2 { // the first leaves what has a finalizer, and what was in a sync.Pool
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
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

// window is how long a benchmark runs that counts what happens in a time. With -short it says nothing of speed.
func window() time.Duration {
	if testing.Short() {
		return 200 * time.Millisecond
	}
	return 2 * time.Second
}

// turns is how many turns what is compared takes in a window.
const turns = 4

// once runs work a single time, whatever -benchtime is.
func once(b *testing.B, work func()) {
	b.Helper()
	for done := false; b.Loop(); done = true {
		if !done {
			work()
		}
	}
	b.ReportMetric(0, "ns/op") // not what was measured
}

// versus is two ways to do a thing. They run in alternating batches, so that what the machine
// does meanwhile hits both.
type versus [2]func() error

const batch = 50

func (v versus) round(b *testing.B, spent *[2]time.Duration) {
	b.Helper()
	for i, f := range v {
		began := time.Now()
		for range batch {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		spent[i] += time.Since(began)
	}
}

// rate runs every function in a goroutine of its own, again and again for one turn, and returns
// how many calls a second they got through together.
func rate(b *testing.B, work []func() error) float64 {
	b.Helper()
	var over atomic.Bool
	var calls atomic.Int64
	began := time.Now()
	defer time.AfterFunc(window()/turns, func() { over.Store(true) }).Stop()
	inEach(b, len(work), func(i int) (err error) {
		n := 0
		for ; err == nil && !over.Load(); n++ {
			err = work[i]()
		}
		calls.Add(int64(n))
		return err
	})
	return float64(calls.Load()) / time.Since(began).Seconds()
}

// inEach calls f in n goroutines and waits for them.
func inEach(b *testing.B, n int, f func(i int) error) {
	b.Helper()
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

// counted reports what an Observer has counted.
func (o Bench) counted(b *testing.B, n float64, unit string) {
	b.Helper()
	if o.Observer != nil {
		b.ReportMetric(n, unit)
	}
}

// watch looks now and then how many connections the Lockers have, until the function is called
// that it returns, which tells the most that it saw.
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

// percentile of times, which it sorts, in microseconds.
func percentile(times []time.Duration, p int) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return float64(times[(len(times)-1)*p/100].Nanoseconds()) / 1e3
}

// unfairness is how many times as often as the one that was served least the one was that was
// served most.
func unfairness(served []int) float64 {
	return float64(slices.Max(served)) / float64(slices.Min(served))
}
