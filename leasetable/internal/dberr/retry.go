package dberr

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/jitter"
)

// AttemptTimeout bounds one statement. On a connection that was cut off nothing else does. The next attempt gets
// another connection.
const AttemptTimeout = 3 * time.Second

// Retry calls f until it succeeds, fails for good, ctx ends or the time is up. It is for statements that release a
// lock. It outlasts a broken connection and a restart of the server.
func Retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	began := time.Now()
	end := began.Add(within)
	for pause := backoff.First; ; pause = backoff.Patient(pause, began) {
		err := Once(ctx, min(AttemptTimeout, time.Until(end)), f)
		if e := (*Error)(nil); !errors.As(err, &e) || !e.Transient || time.Until(end) < pause || backoff.Sleep(ctx, jitter.Around(pause)) != nil {
			return err
		}
	}
}

// Once calls f with a context that ends after the timeout.
func Once(ctx context.Context, timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return f(ctx)
}

// Value runs f by how, which is Retry, Once or RetryConflicts, and returns its value, too.
func Value[T any](
	ctx context.Context, how func(context.Context, time.Duration, func(context.Context) error) error, within time.Duration,
	f func(context.Context) (T, error),
) (v T, err error) {
	err = how(ctx, within, func(ctx context.Context) (err error) {
		v, err = f(ctx)
		return err
	})
	return v, err
}

// ConflictTimeout bounds RetryConflicts, and every statement that acquires a lock.
const ConflictTimeout = 10 * time.Second

// RetryConflicts calls f again while the database undoes it because of other transactions: a deadlock, a serialization
// failure, a busy file. It stops when the time is up. It is for statements that acquire a lock, which the caller can
// request again, and does not wait for a server that accepts no connections.
func RetryConflicts(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		err := f(ctx)
		if e := (*Error)(nil); !errors.As(err, &e) || !e.Transient || !e.OutcomeKnown || e.passing || backoff.Sleep(ctx, jitter.Around(pause)) != nil {
			return err
		}
	}
}
