package locktest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/waitqueue"
)

// handoff has 64 goroutines wait for one lock of one Locker, who hold it for a millisecond each. A handoff is from when
// Release is called until the next holder has the lock, and how many there are in a second counts the holds in between;
// "x-in-memory" is how many times as many there are as of a queue
// that asks no database. The statements are those of the Locker's whole life, opening its connections included.
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
		var queue waitqueue.Queue[string, struct{}]
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

// relayOf64 has 64 runners hand on a lock for a while.
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

// relay is a lock that runners hand on to each other. Each waits for it, holds it for a
// millisecond, and queues up again.
type relay struct {
	ctx     context.Context //nolint:containedctx // the benchmark's
	runners int
	take    func(ctx context.Context, runner int) (release func(context.Context) error, err error)
	done    sync.WaitGroup

	mu       sync.Mutex
	stopped  bool            // guarded by mu
	err      error           // guarded by mu: the first
	taken    int             // guarded by mu: how often, in all
	served   []int           // guarded by mu: how often each runner was, since count
	gaps     []time.Duration // guarded by mu: from release to next holder, since count
	released time.Time       // guarded by mu: when release was last called
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

// took notes who has the lock since when, and reports whether the relay goes on.
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

// count forgets what was counted up to now.
func (r *relay) count() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.served)
	r.gaps = r.gaps[:0]
}

// stop ends the counting and waits for the runners. Everyone gets the lock once more.
func (r *relay) stop() error {
	r.mu.Lock()
	r.stopped = true
	r.mu.Unlock()
	r.done.Wait()
	return r.err
}

// pause lets a time pass, or returns when the relay's context ends.
func (r *relay) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}
