package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/waitqueue"
)

// handoff makes 64 goroutines wait for one lock of one Locker; each holds it for a millisecond. A handoff lasts from
// the call of Release until the next holder has the lock. The rate of handoffs includes the holds in between.
// "x-in-memory" is that rate divided by the rate of a wait queue without a database. The statements are those of the
// Locker's whole life, including the opening of its connections.
func (o Bench) handoff(b *testing.B) {
	statements := func() int {
		if o.Observer == nil {
			return 0
		}
		n, err := o.Statements(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	before := statements()
	once(b, func() {
		var queue waitqueue.Queue[string, struct{}, struct{}]
		inMemory := relayOf64(b, func(ctx context.Context, _ int) (func(context.Context) error, error) {
			_, err := queue.Wait(ctx, "relay")
			return func(context.Context) error { queue.Done("relay"); return nil }, err
		})
		l := o.Locker(b)
		peak := o.watch(b)
		r := relayOf64(b, func(ctx context.Context, _ int) (func(context.Context) error, error) {
			return acquire(ctx, l, "relay")
		})
		o.counted(b, peak(), "conns")
		b.ReportMetric(float64(len(r.gaps))/float64(len(inMemory.gaps)), "x-in-memory")
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
		o.counted(b, float64(statements()-before)/float64(r.taken), "statements/handoff")
		b.ReportMetric(percentile(r.gaps, 50), "p50-µs")
		b.ReportMetric(percentile(r.gaps, 99), "p99-µs")
		b.ReportMetric(unfairness(r.served), "max/min")
		b.ReportMetric(float64(len(r.gaps))/window().Seconds(), "handoffs/s")
	})
}

// relayOf64 makes 64 runners hand a lock on for a while.
func relayOf64(b *testing.B, take func(ctx context.Context, runner int) (func(context.Context) error, error)) *relay {
	b.Helper()
	r := newRelay(b.Context(), 64, take)
	r.start()
	r.pause(window() / 4)
	r.count()
	r.pause(window())
	if err := r.stop(); err != nil {
		b.Fatal(err)
	}
	return r
}

func acquire(ctx context.Context, l Locker, name string) (release func(context.Context) error, err error) {
	lock, err := l.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return lock.Release, nil
}

// relay is a lock that runners hand on to each other. Each runner waits for it, holds it for a millisecond, and joins
// the queue again.
type relay struct {
	ctx     context.Context //nolint:containedctx // the benchmark's
	runners int
	take    func(ctx context.Context, runner int) (release func(context.Context) error, err error)
	done    sync.WaitGroup

	mu       sync.Mutex
	stopped  bool            // guarded by mu
	err      error           // guarded by mu: the first error
	taken    int             // guarded by mu: total number of acquisitions
	served   []int           // guarded by mu: acquisitions of each runner since count
	gaps     []time.Duration // guarded by mu: from release to the next holder, since count
	released time.Time       // guarded by mu: the last release
}

func newRelay(
	ctx context.Context, runners int, take func(ctx context.Context, runner int) (func(context.Context) error, error),
) *relay {
	return &relay{ctx: ctx, runners: runners, take: take, served: make([]int, runners)}
}

func (r *relay) start() {
	for i := range r.runners {
		r.done.Go(func() {
			if err := r.run(i); err != nil {
				r.mu.Lock()
				defer r.mu.Unlock()
				if r.err == nil {
					r.err = err
				}
				r.stopped = true
			}
		})
	}
}

func (r *relay) run(i int) error {
	for {
		release, err := r.take(r.ctx, i)
		if err != nil {
			return err
		}
		goOn := r.took(i, time.Now())
		if goOn {
			r.pause(time.Millisecond)
		}
		r.mu.Lock()
		r.released = time.Now()
		r.mu.Unlock()
		if err := release(r.ctx); err != nil || !goOn {
			return err
		}
	}
}

// took records an acquisition, and reports whether the relay continues.
func (r *relay) took(i int, at time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken++
	if r.stopped {
		return false
	}
	r.served[i]++
	if !r.released.IsZero() {
		r.gaps = append(r.gaps, at.Sub(r.released))
	}
	return true
}

// count resets the counters.
func (r *relay) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.served)
	r.gaps = r.gaps[:0]
}

// stop ends the counting and waits for the runners. Each runner acquires the lock once more.
func (r *relay) stop() error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.done.Wait()
	return r.err
}

// pause waits for a while, or until the relay's context ends.
func (r *relay) pause(d time.Duration) { _ = backoff.Sleep(r.ctx, d) }
