package locktest

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/netfault"
)

// network has two Lockers, and two bare connections, that reach the server through a network that takes 25 ms each way.
// Everything is told in round trips. "handover" is from the release until the other one, which waits, has the lock.
func (o Fleet) network(b *testing.B) {
	const delay = 25 * time.Millisecond
	rounds := 5
	if testing.Short() {
		rounds = 1
	}
	once(b, func() {
		var lockers, bare [2]taker
		for i := range lockers {
			l, c := o.Far(b, func(server string) string {
				n := netfault.New(b, netfault.TCP(server), netfault.Bytes)
				n.Delay(2 * delay)
				return n.Address()
			})
			lockers[i] = func(ctx context.Context, name string) (func(context.Context) error, error) {
				return acquire(ctx, l, name)
			}
			bare[i] = func(ctx context.Context, name string) (func(context.Context) error, error) {
				free := func(ctx context.Context) error { return c.Unlock(ctx, name) }
				return free, c.Wait(ctx, name)
			}
		}
		for _, two := range []struct {
			takers [2]taker
			suffix string
		}{{lockers, ""}, {bare, "-bare"}} {
			var acquiring, releasing, passing time.Duration
			far(b, two.takers[0], two.takers[1], delay) // opens the connections, and makes the row
			for range rounds {
				a, r, p := far(b, two.takers[0], two.takers[1], delay)
				acquiring, releasing, passing = acquiring+a, releasing+r, passing+p
			}
			trips := func(d time.Duration) float64 { return d.Seconds() / (2 * delay).Seconds() / float64(rounds) }
			b.ReportMetric(trips(acquiring), "acquire"+two.suffix)
			b.ReportMetric(trips(releasing), "release"+two.suffix)
			b.ReportMetric(trips(passing), "handover"+two.suffix)
		}
	})
}

// far has one taker acquire and release a name alone, and then hand it over to the next, which waits.
func far(b *testing.B, one, next taker, delay time.Duration) (acquiring, releasing, passing time.Duration) {
	b.Helper()
	const name = "far away"
	take := func(t taker) func(context.Context) error {
		release, err := t(b.Context(), name)
		if err != nil {
			b.Fatal(err)
		}
		return release
	}
	free := func(release func(context.Context) error) {
		if err := release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	began := time.Now()
	release := take(one)
	acquiring = time.Since(began)
	began = time.Now()
	free(release)
	releasing = time.Since(began)

	release = take(one)
	type outcome struct {
		release func(context.Context) error
		at      time.Time
		err     error
	}
	got := make(chan outcome, 1)
	go func() {
		release, err := next(b.Context(), name)
		got <- outcome{release, time.Now(), err}
	}()
	<-time.After(40 * delay) // it waits by then
	began = time.Now()
	free(release)
	o := <-got
	if o.err != nil {
		b.Fatal(o.err)
	}
	free(o.release)
	return acquiring, releasing, o.at.Sub(began)
}
