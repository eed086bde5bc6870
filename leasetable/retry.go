package leasetable

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstPause = 5 * time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// retry calls f until it succeeds, fails for good, or ctx ends. It is for what keeps or frees
// a lock, and outlasts a broken connection or a server that restarts.
func retry(ctx context.Context, f func() error) error {
	for pause := firstPause; ; pause = longer(pause) {
		err := f()
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || sleep(ctx, jitter(pause)) != nil {
			return err
		}
	}
}

// conflictRounds bounds retryConflicts.
const conflictRounds = 10

// retryConflicts calls f again, a few times, when the database undid it because of others: a
// deadlock, a serialization failure, a busy file. It is for what takes a lock, which a caller can
// ask for again.
func retryConflicts(ctx context.Context, f func() error) (err error) {
	pause := firstPause
	for range conflictRounds {
		err = f()
		if e := (*dbError)(nil); !errors.As(err, &e) || !e.transient || !e.answered || sleep(ctx, jitter(pause)) != nil {
			return err
		}
		pause = longer(pause)
	}
	return err
}

// longer doubles a pause up to lastPause.
func longer(pause time.Duration) time.Duration { return min(2*pause, lastPause) }

// jitter spreads contenders: it returns between half of pause and one and a half.
func jitter(pause time.Duration) time.Duration {
	return pause/2 + rand.N(pause) //nolint:gosec // not a secret
}

// sleep returns nil after d, or the cause of ctx's end if that comes first.
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
