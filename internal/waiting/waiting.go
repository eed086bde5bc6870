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
// or the database cannot be used, acquire, for what is left of the wait. If the wait is over before acquire has an answer,
// the error still says which of them it was.
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
	held, silent := (*sqllock.HeldError)(nil), bound.WithCause(over, last).Error() == over.Error()
	switch {
	case errors.As(err, &held) && silent:
		return lock, fmt.Errorf("%w: %w", held, over)
	case held == nil && silent:
		return lock, fmt.Errorf("%w: %w", over, err)
	case held == nil && errors.Is(last, over) && !sqllock.IsRetryable(last): // it says only how far acquire came
		return lock, fmt.Errorf("%w: %w", last, err)
	}
	return lock, last
}
