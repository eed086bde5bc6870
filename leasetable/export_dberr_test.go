package leasetable

import (
	"context"
	"errors"
	"time"
)

// Retry exports retry.
func Retry(ctx context.Context, within time.Duration, f func(context.Context) error) error {
	return retry(ctx, within, f)
}

// RetryConflicts exports retryConflicts.
func RetryConflicts(ctx context.Context, f func(context.Context) error) error {
	return retryConflicts(ctx, f)
}

// Failure returns a database error: transient or not, and with a known outcome (the database answered) or not.
func Failure(transient, answered bool) error {
	return &dbError{err: errors.New("the database failed"), transient: transient, outcomeKnown: answered}
}
