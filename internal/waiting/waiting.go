// Package waiting bounds how long an acquisition waits.
package waiting

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// Check returns an error if wait is negative; nil means no bound.
func Check(wait *time.Duration) error {
	if wait != nil && *wait < 0 {
		return fmt.Errorf("the time to wait is %v; it must not be negative", *wait)
	}
	return nil
}

// AtMost acquires an L within wait. If wait is nil, it calls acquire. Otherwise it calls try and, if the lock is held
// or the database cannot be used, acquire, for what is left of the wait. If it was held, and the wait is over before
// acquire has an answer, the error still says so.
func AtMost[L any](ctx context.Context, wait *time.Duration, try, acquire func(context.Context) (L, error)) (L, error) {
	if wait == nil {
		return acquire(ctx)
	}
	began := time.Now()
	lock, err := try(ctx)
	left := *wait - time.Since(began)
	if err == nil || left <= 0 || ctx.Err() != nil || !sqllock.IsRetryable(err) {
		return lock, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, left, fmt.Errorf("the wait of %v is over", *wait))
	defer cancel()
	lock, last := acquire(ctx)
	if last == nil || ctx.Err() == nil {
		return lock, last
	}
	over := context.Cause(ctx)
	if bound.WithCause(over, last).Error() != over.Error() { // acquire had an answer of its own
		return lock, last
	}
	if held := (*sqllock.HeldError)(nil); errors.As(err, &held) {
		over = fmt.Errorf("%w: %w", held, over)
	}
	return lock, over
}
