package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// What a test needs on a machine that stalls for seconds.

// errGaveUp is the error of a release that took so long that it may have given up.
var errGaveUp = errors.New("the release gave up")

// releaseOrGiveUp releases a lock in a test that keeps the release from its end for a while. A release gives up after five
// seconds: then its error matches errGaveUp, and the name is freed in the background.
func releaseOrGiveUp(ctx context.Context, lock *leasetable.Lease) error {
	began := time.Now()
	err := lock.Release(ctx)
	if err != nil && !errors.Is(err, sqllock.ErrLost) && time.Since(began) > 4*time.Second {
		return fmt.Errorf("%w: %w", errGaveUp, err)
	}
	return err
}

// tryUntilAnswered calls TryAcquire for "x", whose row somebody has locked. It calls it again if the row stays locked for
// longer than one call waits.
func tryUntilAnswered(ctx context.Context, l *leasetable.Locker, opts ...sqllock.Option) (*leasetable.Lease, error) {
	for {
		lease, err := l.TryAcquire(ctx, "x", opts...)
		if ctx.Err() != nil || errors.Is(err, sqllock.ErrHeld) || !sqllock.IsRetryable(err) {
			return lease, err
		}
	}
}
