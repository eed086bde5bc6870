package locktest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Fleet is what the benchmarks of many processes need from a backend, besides what those of one need. A Locker is what
// a process has. The server accepts 1,000 connections.
type Fleet struct {
	// Locker opens another Locker on the database, and closes it when b ends.
	Locker func(b *testing.B) Locker

	// Bare opens a connection whose Wait waits in the server's own queue. It is closed when b ends.
	Bare func(b *testing.B) Bare

	// Far opens a Locker and a connection that reach the server by way of another host:port.
	Far func(b *testing.B, via func(server string) string) (Locker, Bare)

	Counts
}

// Counts queries the server. It is not called concurrently, and does not count itself.
type Counts interface {
	// Connections counts connections to the database. It may leave out those of Bare.
	Connections(ctx context.Context) (int, error)
	// Statements counts all statements that were ever sent to the database, on connections that have ended.
	Statements(ctx context.Context) (int, error)
}

// fleetHold is for how long each member of a fleet holds the lock.
const fleetHold = time.Millisecond

// Run runs the benchmarks. Each runs once, whatever -benchtime is.
func (o Fleet) Run(b *testing.B) {
	sizes := []int{8, 64, 256}
	if testing.Short() {
		sizes = sizes[:1] // to show that it works
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("Fleet%d", n), func(b *testing.B) { o.contend(b, n) })
	}
	b.Run("Waiting64", func(b *testing.B) { o.idle(b, 64) })
	b.Run("Network25ms", o.network)
}

// contend makes n Lockers want one lock. Each holds it for a millisecond, and wants it again at once. "x-bare" is the rate
// divided by that of n bare connections, "x-limit" the rate divided by what one bare connection does alone: acquire,
// hold, release. "max/min" is how much more often than the last one the first one was served. The statements are those
// of the Lockers' whole life.
func (o Fleet) contend(b *testing.B, n int) {
	once(b, func() {
		var served, bareServed []int64
		taken := 0
		connections, statements := o.counted(b, n, func(lockers []Locker) {
			takers := make([]taker, n)
			for i, l := range lockers {
				takers[i] = func(ctx context.Context, name string) (func(context.Context) error, error) {
					return acquire(ctx, l, name)
				}
			}
			served, taken = serve(b, takers)
		})
		takers := make([]taker, n)
		var alone time.Duration
		for i := range takers {
			c := o.Bare(b)
			if i == 0 {
				alone = pairTime(b, c)
			}
			takers[i] = func(ctx context.Context, name string) (func(context.Context) error, error) {
				free := func(ctx context.Context) error { return c.Unlock(ctx, name) }
				return free, c.Wait(ctx, name)
			}
		}
		bareServed, _ = serve(b, takers)
		perSecond := total(served) / fleetWindow().Seconds()
		b.ReportMetric(perSecond, "handoffs/s")
		b.ReportMetric(total(served)/total(bareServed), "x-bare")
		b.ReportMetric(perSecond*(alone+fleetHold).Seconds(), "x-limit")
		b.ReportMetric(spreadOf(served), "max/min")
		b.ReportMetric(spreadOf(bareServed), "max/min-bare")
		b.ReportMetric(float64(statements)/float64(taken), "statements/handoff")
		b.ReportMetric(float64(connections), "conns")
	})
}

// idle makes n Lockers wait for a lock that another one holds. "statements/s" is what they send in some seconds of
// waiting: the difference of a long wait and a short one. "x-bare-conns" is the number of connections divided by that
// of bare connections, which send no statement while they wait.
func (o Fleet) idle(b *testing.B, n int) {
	once(b, func() {
		wait := func(d time.Duration) (connections, statements int) {
			return o.counted(b, n+1, func(lockers []Locker) {
				const name = "held for long"
				held, err := lockers[0].Acquire(b.Context(), name)
				if err != nil {
					b.Fatal(err)
				}
				ctx, stop := context.WithCancel(b.Context())
				defer stop()
				var all sync.WaitGroup
				for _, l := range lockers[1:] {
					all.Go(func() {
						if lock, err := l.Acquire(ctx, name); err == nil {
							b.Errorf("%s was acquired while it was held", name)
							_ = lock.Release(context.WithoutCancel(ctx)) // told above
						}
					})
				}
				<-time.After(d)
				stop()
				all.Wait()
				if err := held.Release(b.Context()); err != nil {
					b.Fatal(err)
				}
			})
		}
		short, long := 3*window(), 5*window()
		_, first := wait(short)
		connections, all := wait(long)
		b.ReportMetric(float64(all-first)/(long-short).Seconds(), "statements/s")
		b.ReportMetric(float64(connections), "conns")
		b.ReportMetric(float64(connections)/float64(n+1), "x-bare-conns")
	})
}

// counted opens n Lockers, does something with them, and closes them. It returns how many connections they had
// afterwards, and how many statements they have sent.
func (o Fleet) counted(b *testing.B, n int, do func(lockers []Locker)) (connections, statements int) {
	b.Helper()
	count := func(f func(context.Context) (int, error)) int {
		n, err := f(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		return n
	}
	others, before := count(o.Connections), count(o.Statements)
	lockers := make([]Locker, n)
	for i := range lockers {
		lockers[i] = o.Locker(b)
	}
	do(lockers)
	connections = count(o.Connections) - others
	var closing sync.WaitGroup
	for _, l := range lockers {
		closing.Go(func() {
			if err := l.Close(); err != nil {
				b.Error(err)
			}
		})
	}
	closing.Wait()
	for deadline := time.Now().Add(soon); count(o.Connections) > others; {
		if time.Now().After(deadline) {
			b.Fatal("connections are left")
		}
	}
	return connections, count(o.Statements) - before
}

// pairTime returns how long one connection takes to acquire and release a lock, alone.
func pairTime(b *testing.B, c Bare) time.Duration {
	b.Helper()
	const pairs = 200
	began := time.Now()
	for range pairs {
		if err := errors.Join(c.Try(b.Context(), "alone"), c.Unlock(b.Context(), "alone")); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(began) / pairs
}

func fleetWindow() time.Duration { return 4 * window() }

// taker acquires a name, and returns how to release it.
type taker func(ctx context.Context, name string) (release func(context.Context) error, err error)

// serve makes all takers want one name for a while, after each was served once. It returns how often each was served in
// that time, and how often all were served ever.
func serve(b *testing.B, takers []taker) (served []int64, taken int) {
	b.Helper()
	const name = "of the fleet"
	served = make([]int64, len(takers))
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var once, all sync.WaitGroup
	var over, counting atomic.Bool
	var ever atomic.Int64
	once.Add(len(takers))
	errs := make(chan error, len(takers))
	for i, take := range takers {
		all.Go(func() {
			for first := true; !over.Load(); first = false {
				release, err := take(ctx, name)
				if err == nil {
					<-time.After(fleetHold)
					err = release(ctx)
				}
				if first {
					once.Done()
				}
				if err != nil {
					errs <- err
					stop() // the name may still be held
					return
				}
				ever.Add(1)
				if counting.Load() {
					served[i]++
				}
			}
		})
	}
	once.Wait()
	counting.Store(true)
	<-time.After(fleetWindow())
	counting.Store(false)
	over.Store(true) // each is served once more: bare connections do not survive a wait that is cancelled
	all.Wait()
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
	return served, int(ever.Load())
}

func total(served []int64) (sum float64) {
	for _, n := range served {
		sum += float64(n)
	}
	return sum
}

func spreadOf(served []int64) float64 {
	return float64(slices.Max(served)) / float64(max(slices.Min(served), 1))
}
