package leasetable_test

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Tests in which a driver ends a goroutine of the Locker, as testing.T.FailNow does. See also panic_test.go.

// The claim goes on in a goroutine of the Locker. I19.
func TestAClaimThatEndsItsGoroutineAfterItsCallerHasLeftKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept, lock := take(t, l, "kept"), take(t, keep(t, server.Store()), "x")
		s.read = func(context.Context, string) (store.State, error) {
			s.read = nil
			pass(time.Second)
			runtime.Goexit()
			return store.State{}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.TryAcquire(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("its caller has not left: %v", err)
		}
		release(t, lock)
		release(t, take(t, l, "x"), kept)
	})
}

// I32.
func TestAClaimOfAPermitThatEndsItsGoroutineTakesNoPermit(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, limit := keep(t, s, leasetable.WithTTL(time.Hour)), leasetable.WithLimit(1)
		kept := take(t, l, "kept")
		s.permit = func(ctx context.Context, name string, was store.State, id []byte, limit int) (int64, error) {
			s.permit = nil
			_, _ = s.Store.AcquirePermit(ctx, name, was, id, limit)
			runtime.Goexit()
			return 0, nil
		}
		if _, err := l.TryAcquire(t.Context(), "x", limit); err == nil {
			t.Error("it has a permit")
		}
		release(t, take(t, keep(t, server.Store()), "x", limit), kept)
	})
}

// So does the release of a name that was handed to a caller that has left. I19.
func TestAHandoffThatIsDeclinedAndEndsItsGoroutineKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.handOff = func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
			defer pass(100 * time.Millisecond)
			return s.Store.HandOff(ctx, h, n, metadata)
		}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		lock := take(t, l, "x")
		leave := waitingForX(t, l)
		released := releaseSoon(t, lock)
		synctest.Wait() // the handoff is under way
		leave()
		pass(time.Millisecond)
		ended := make(chan struct{})
		s.release = func(context.Context, *store.Request) (store.Result, error) {
			defer close(ended)
			s.release = nil
			pass(time.Second)
			runtime.Goexit()
			return store.Result{}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(ctx, "x"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it has not left: %v", err)
		}
		<-ended
		if err := <-released; err != nil {
			t.Error(err)
		}
		release(t, take(t, l, "x"))
	})
}

// I20.
func TestAForcedReleaseIsToldThoughTheFirstVerificationEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		lock := take(t, keep(t, s, leasetable.WithTTL(time.Hour)), "x")
		s.held = func(context.Context, []byte, []string) ([]store.State, error) {
			s.held = nil
			runtime.Goexit()
			return nil, nil
		}
		if _, err := keep(t, server.Store()).ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		pass(50 * time.Minute) // two renewals
		if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
	})
}

// I17.
func TestAnOrphanIsFreedThoughItsFirstReleaseEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept") // keeps the lease alive
		s.free = func(ctx context.Context, req *store.Request) (store.Result, error) {
			s.free = nil
			_, _ = s.Store.AcquireFree(ctx, req)
			return store.Result{}, errCut
		}
		s.byLease = func(context.Context, string, []byte, time.Duration) (int64, error) {
			s.byLease = nil
			runtime.Goexit()
			return 0, nil
		}
		release(t, take(t, keep(t, server.Store()), "x"))
		if _, err := l.TryAcquire(t.Context(), "x"); err == nil {
			t.Error("the answer was not lost")
		}
		release(t, take(t, keep(t, server.Store()), "x"), kept)
	})
}

// I23.
func TestAForgottenReleaseIsFoundThoughTheSearchEndsItsGoroutineAtFirst(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &searched{Store: server.Store(), exits: true}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept, forgotten := take(t, l, "kept"), take(t, l, "x")
		pass(100 * time.Millisecond)
		release(t, forgotten)
		server.Failover(50 * time.Millisecond)
		s.connection.Add(1)
		mustRenew(t, kept)
		release(t, take(t, keep(t, server.Store()), "x"), kept)
	})
}

// I26, I27.
func TestAMoveThatEndsItsGoroutineIsRepeated(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		lock := take(t, keep(t, s), "x")
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			s.move = nil
			_, _ = s.Store.Move(ctx, name, token, from, to)
			runtime.Goexit()
			return false, nil
		}
		for range 2 { // to another lease each time
			if err := lock.Extend(t.Context(), max(time.Hour, 2*lock.Remaining())); err != nil {
				t.Error(err)
			}
		}
		release(t, lock)
		release(t, take(t, keep(t, server.Store()), "x"))
	})
}

// late is a context that keeps the first goroutine that uses it waiting.
type late struct {
	context.Context
	used atomic.Bool
}

func (c *late) Done() <-chan struct{} {
	if c.used.CompareAndSwap(false, true) {
		pass(time.Minute)
	}
	return c.Context.Done()
}

// stumbling is a store whose first statement for many names ends its goroutine.
type stumbling struct {
	*memory.Store
	stumbled atomic.Bool
}

func (s *stumbling) AcquireMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	if s.stumbled.CompareAndSwap(false, true) {
		runtime.Goexit()
	}
	return s.Store.AcquireMany(ctx, reqs)
}

// The names that have come by then share a statement, and the late one has its own.
func TestANameThatIsLateIsServedThoughTheStatementBeforeEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &stumbling{Store: memory.NewServer(memory.Postgres).Store()}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept := take(t, l, "kept")
		if _, err := l.TryAcquireAll(&late{Context: t.Context()}, []string{"x", "y", "z"}); err == nil {
			t.Error("it did not fail")
		}
		if !s.stumbled.Load() {
			t.Error("no statement was for many")
		}
		release(t, kept, take(t, l, "x"), take(t, l, "y"), take(t, l, "z"))
	})
}
