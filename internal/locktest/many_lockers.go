package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// ManyLockers tests the Lockers of a user to whom the server grants only a limited number of connections. Each Locker may
// need more than one.
func ManyLockers(t *testing.T, newLocker func(t *testing.T) Locker, connections int) {
	t.Helper()
	t.Run("as many Lockers as connections hold a lock each", func(t *testing.T) {
		locks := make([]sqllock.Lock, connections)
		inCrowd(t, newLocker, connections, func(ctx context.Context, l Locker, i int) (err error) {
			locks[i], err = acquireInCrowd(ctx, l, fmt.Sprint(t.Name(), i))
			return err
		}, func(ctx context.Context, l Locker, i int) error {
			for j := range 20 { // in addition to the held lock
				another, err := acquireInCrowd(ctx, l, fmt.Sprint(t.Name(), i, "/", j))
				if err != nil {
					return err
				}
				if err := another.Release(ctx); err != nil {
					return err
				}
			}
			if err := locks[i].Context().Err(); err != nil {
				return fmt.Errorf("a lock has ended: %w", context.Cause(locks[i].Context()))
			}
			return locks[i].Release(ctx)
		})
	})
	t.Run("more Lockers than connections are served in turn", func(t *testing.T) {
		inCrowd(t, newLocker, 2*connections, func(ctx context.Context, l Locker, i int) error {
			for range 3 {
				lock, err := acquireInCrowd(ctx, l, fmt.Sprint(t.Name(), i))
				if err != nil {
					return err
				}
				if err := lock.Release(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	})
	t.Run("more Lockers than connections want one name", func(t *testing.T) {
		OneNameInCrowd(t, newLocker, connections+connections/2)
	})
	t.Run("who gets none is told at once", func(t *testing.T) {
		for range connections {
			l := newLocker(t)
			lock, err := acquireInCrowd(bounded(t), l, fmt.Sprint(t.Name(), time.Now().UnixNano()))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { MustRelease(t, lock) })
		}
		quickest := time.Hour
		for range 3 {
			l, began := newLocker(t), time.Now()
			lock, err := l.TryAcquire(t.Context(), t.Name())
			quickest = min(quickest, time.Since(began))
			if err == nil {
				t.Fatalf("%s was taken without a connection", lock.Name())
			}
			if !errors.Is(err, sqllock.ErrLimit) || !sqllock.IsRetryable(err) {
				t.Errorf("the error of a server without a free connection is %v; it should match ErrLimit and be retryable", err)
			}
		}
		if quickest > 5*time.Second { // the machine may stall in one of them
			t.Errorf("to be told took %v at least", quickest)
		}
	})
}

// OneNameInCrowd has more Lockers than the server grants connections acquire one name, twice each. A Locker without a
// connection waits: none fails.
func OneNameInCrowd(t *testing.T, newLocker func(t *testing.T) Locker, lockers int) {
	t.Helper()
	inCrowd(t, newLocker, lockers, func(ctx context.Context, l Locker, _ int) error {
		for range 2 {
			lock, err := l.Acquire(ctx, t.Name())
			if err != nil {
				return err
			}
			if err := lock.Release(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// inCrowd runs each step in all Lockers at the same time, and starts the next step when all have finished.
func inCrowd(t *testing.T, newLocker func(*testing.T) Locker, lockers int, steps ...func(ctx context.Context, l Locker, i int) error) {
	t.Helper()
	all := make([]Locker, lockers)
	for i := range all {
		all[i] = newLocker(t)
	}
	ctx := endingIn(t, 2*soon)
	for _, step := range steps {
		var running sync.WaitGroup
		for i, l := range all {
			running.Go(func() {
				if err := step(ctx, l, i); err != nil {
					t.Errorf("Locker %d: %v", i, err)
				}
			})
		}
		running.Wait()
	}
	for _, l := range all {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}

// acquireInCrowd acquires a free lock as soon as there is a connection.
func acquireInCrowd(ctx context.Context, l Locker, name string) (sqllock.Lock, error) {
	for {
		lock, err := l.Acquire(ctx, name)
		if err == nil || !sqllock.IsRetryable(err) || ctx.Err() != nil {
			return lock, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, err
		}
	}
}
