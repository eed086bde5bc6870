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

// fleetHold is for how long each member of a fleet holds the lock.
const fleetHold = time.Millisecond

// fleet has n Lockers, as n processes have, want one lock. Each holds it for a millisecond, and wants it again at once.
// "x-limit" is the rate divided by what one bare connection does alone: acquire, hold, release. "max/min" is how much
// more often than the last one the first one was served.
func (o Bench) fleet(b *testing.B, n int) {
	name := fmt.Sprint("fleet of ", n)
	members := make([]Locker, n)
	for i := range members {
		members[i] = o.Locker(b)
	}
	bare := o.Bare(b)
	once(b, func() {
		alone := b.Elapsed()
		const pairs = 200
		for range pairs {
			if err := errors.Join(bare.Try(b.Context(), "alone"), bare.Unlock(b.Context(), "alone")); err != nil {
				b.Fatal(err)
			}
		}
		alone = (b.Elapsed() - alone) / pairs
		served := o.serve(b, members, name)
		all := 0
		for _, n := range served {
			all += int(n)
		}
		perSecond := float64(all) / fleetWindow().Seconds()
		b.ReportMetric(perSecond, "handoffs/s")
		b.ReportMetric(perSecond*(alone+fleetHold).Seconds(), "x-limit")
		b.ReportMetric(float64(slices.Max(served))/float64(max(slices.Min(served), 1)), "max/min")
	})
}

func fleetWindow() time.Duration { return 4 * window() }

// serve has the members want the lock for a while, after each was served once. It returns how often each was served.
func (o Bench) serve(b *testing.B, members []Locker, name string) []int64 {
	served := make([]int64, len(members))
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	var once, all sync.WaitGroup
	var counting atomic.Bool
	once.Add(len(members))
	errs := make(chan error, len(members))
	for i, l := range members {
		all.Go(func() {
			for first := true; ctx.Err() == nil; first = false {
				lock, err := l.Acquire(ctx, name)
				if err == nil {
					<-time.After(fleetHold)
					err = lock.Release(context.WithoutCancel(ctx))
				}
				if first {
					once.Done()
				}
				if err != nil {
					if ctx.Err() == nil {
						errs <- err
					}
					return
				}
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
	stop()
	all.Wait()
	select {
	case err := <-errs:
		b.Fatal(err)
	default:
	}
	return served
}
