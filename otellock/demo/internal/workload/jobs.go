package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
)

// thumbnails makes thumbnails, again and again: there are fewer folders than workers, so that some wait.
func (m *machine) thumbnails(ctx context.Context) {
	for pause(ctx, 200*time.Millisecond) {
		m.do(ctx, fmt.Sprintf("thumbnails/%d", rand.N(5)), 150*time.Millisecond) //nolint:gosec // not a secret
	}
}

// report makes a report, and waits half a second at most for the other machine, which takes longer now and then.
func (m *machine) report(ctx context.Context) {
	for pause(ctx, 2*time.Second) {
		m.do(ctx, "report", 700*time.Millisecond, sqllock.WithWait(500*time.Millisecond))
	}
}

// mail sends mails, unless the other machine does.
func (m *machine) mail(ctx context.Context) {
	for pause(ctx, time.Second) {
		_, _ = sqllock.TryDo(ctx, m.locker, "mail", func(ctx context.Context) error {
			pause(ctx, time.Second)
			return nil
		})
	}
}

// lead leads for as long as it can; the other machine waits for half a minute, and asks again.
func (m *machine) lead(ctx context.Context) {
	for pause(ctx, 100*time.Millisecond) {
		_ = sqllock.Do(ctx, m.locker, "leader", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, sqllock.WithWait(30*time.Second))
	}
}

// do holds a lock for about some time. Its errors are in the metrics.
func (m *machine) do(ctx context.Context, name string, about time.Duration, opts ...sqllock.Option) {
	_ = sqllock.Do(ctx, m.locker, name, func(ctx context.Context) error {
		pause(ctx, about)
		return nil
	}, opts...)
}

// pause waits for about some time, and returns false if ctx ends.
func pause(ctx context.Context, about time.Duration) bool { return wait(ctx, about/2+rand.N(about)) } //nolint:gosec // not a secret

func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
