package locktest

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// inUse returns the memory in use, including the stacks of goroutines.
func inUse() int64 {
	var m runtime.MemStats
	for range 2 { // the first run keeps objects with a finalizer and those of a sync.Pool
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// window returns the duration of a benchmark that counts events. With -short it is too short to measure a rate.
func window() time.Duration {
	if testing.Short() {
		return 200 * time.Millisecond
	}
	return 2 * time.Second
}

// turns is how many times the compared workloads alternate in a window.
const turns = 4

// once runs work a single time, whatever -benchtime is.
func once(b *testing.B, work func()) {
	b.Helper()
	for done := false; b.Loop(); done = true {
		if !done {
			work()
		}
	}
	b.ReportMetric(0, "ns/op") // not measured
}

// versus compares two ways to do the same. They run in alternating batches, so that other load of the machine affects
// both.
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

// rate runs every function in a goroutine of its own, repeatedly for one turn, and returns the total number of calls
// per second.
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

// percentile returns a percentile of times, in microseconds. It sorts times.
func percentile(times []time.Duration, p int) float64 {
	if len(times) == 0 {
		return 0
	}
	slices.Sort(times)
	return float64(times[(len(times)-1)*p/100].Nanoseconds()) / 1e3
}

// unfairness returns the largest number served divided by the smallest.
func unfairness(served []int) float64 {
	return float64(slices.Max(served)) / float64(slices.Min(served))
}
