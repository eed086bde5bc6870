package leasetable

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	lastPause  = 50 * time.Millisecond
)

// attemptTimeout bounds one statement. On a connection that was cut off nothing else does. The next attempt gets
// another connection.
const attemptTimeout = 3 * time.Second

// retry calls f until it succeeds, fails for good, ctx ends or the time is up. It is for statements that release a
// lock. It outlasts a broken connection and a restart of the server.
func retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	end := time.Now().Add(within)
	for pause := firstPause; ; pause = longer(pause) {
		err := once(ctx, min(attemptTimeout, time.Until(end)), f)
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || time.Until(end) < pause || sleep(ctx, jitter(pause)) != nil {
			return err
		}
	}
}

// once calls f with a context that ends after the timeout.
func once(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// conflictTimeout bounds retryConflicts.
const conflictTimeout = 10 * time.Second

// retryConflicts calls f again while the database undoes it because of other transactions: a deadlock, a serialization
// failure, a busy file. It stops after conflictTimeout. It is for statements that acquire a lock, which the caller can
// request again, and does not wait for a server that accepts no connections.
func retryConflicts(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, conflictTimeout)
	defer cancel()
	for pause := firstPause; ; pause = longer(pause) {
		err := f(ctx)
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || !e.outcomeKnown || e.passing || isFull(err) || sleep(ctx, jitter(pause)) != nil {
			return err
		}
	}
}

// longer doubles a pause up to lastPause.
func longer(pause time.Duration) time.Duration { return min(2*pause, lastPause) }

// jitter returns a random time between half of pause and one and a half, to spread contenders.
func jitter(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause) //nolint:gosec // not a secret
}

// sleep returns nil after d, or the cause of the end of ctx if that comes first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
