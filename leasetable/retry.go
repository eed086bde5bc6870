package leasetable

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/backoff"
)

// attemptTimeout bounds one statement. On a connection that was cut off nothing else does. The next attempt gets
// another connection.
const attemptTimeout = 3 * time.Second

// retry calls f until it succeeds, fails for good, ctx ends or the time is up. It is for statements that release a
// lock. It outlasts a broken connection and a restart of the server.
func retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	end := time.Now().Add(within)
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		err := once(ctx, min(attemptTimeout, time.Until(end)), f)
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || time.Until(end) < pause || backoff.Sleep(ctx, backoff.Jitter(pause)) != nil {
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
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		err := f(ctx)
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || !e.outcomeKnown || e.passing || isFull(err) || backoff.Sleep(ctx, backoff.Jitter(pause)) != nil {
			return err
		}
	}
}
