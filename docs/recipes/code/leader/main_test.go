package main

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/leasetable"
)

// leadership is one that a replica has: its context, and what it waits for at its end.
type leadership struct {
	replica int
	ctx     context.Context //nolint:containedctx // the test waits for its end
	lease   *leasetable.Lease
	resign  chan struct{}
}

func TestOneReplicaLeadsAtATime(t *testing.T) {
	t.Parallel()
	adaptertest.Leases(t, func(t *testing.T, p adaptertest.Place) {
		led := make(chan leadership)
		stops := []func() error{replica(t, p, 0, led), replica(t, p, 1, led)}
		operator := p.Leases(t)

		first := receive(t, led)
		if _, err := operator.TryAcquire(t.Context(), "the scheduler"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("while a replica leads: %v", err)
		}

		// A leader that was cut off: another one leads, and its token is higher. It learns of it.
		if _, err := operator.ForceRelease(t.Context(), "the scheduler"); err != nil {
			t.Fatal(err)
		}
		second := receive(t, led)
		if second.lease.Token() <= first.lease.Token() {
			t.Errorf("token %d follows %d", second.lease.Token(), first.lease.Token())
		}
		receive(t, first.ctx.Done())
		if err := context.Cause(first.ctx); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the first leader was told: %v", err)
		}
		close(first.resign)

		// A pod that ends: the other replica leads as soon as the leader has returned, not before.
		stopped := make(chan error, 1)
		go func() { stopped <- stops[second.replica]() }()
		receive(t, second.ctx.Done())
		if second.lease.Context().Err() != nil {
			t.Error("the lock ended before its leader has returned")
		}
		close(second.resign)
		if err := receive(t, stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("the pod that ends: %v", err)
		}
		third := receive(t, led)
		if third.replica == second.replica {
			t.Error("a replica that was stopped leads")
		}
		close(third.resign)
		_ = stops[third.replica]()
	})
}

// replica starts a replica, which sends its leaderships. The function that it returns stops it, and returns its error.
func replica(t *testing.T, p adaptertest.Place, number int, led chan leadership) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- run(ctx, p.DB.DB, func(ctx context.Context, lease *leasetable.Lease) error {
			l := leadership{number, ctx, lease, make(chan struct{})}
			select {
			case led <- l:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			select {
			case <-l.resign:
			case <-t.Context().Done(): // the test has failed
			}
			return context.Cause(ctx)
		})
	}()
	return sync.OnceValue(func() error { cancel(); return <-done })
}

// receive waits for a value, or for the closing of ch.
func receive[T any](t *testing.T, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(time.Minute):
		t.Fatal("waited a minute for what did not happen")
	}
	return v
}
