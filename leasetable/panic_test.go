package leasetable_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// ways are the ways in which a function of the user, a driver's or a hook, does not return.
var ways = map[string]func(){"panic": func() { panic("by the user") }, "Goexit": runtime.Goexit}

// mustNotReturn calls f, which does not return.
func mustNotReturn(t *testing.T, f func()) {
	t.Helper()
	returned, ended := false, make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { _ = recover() }()
		f()
		returned = true
	}()
	<-ended
	if returned {
		t.Error("it returned")
	}
}

// abnormally runs a test with each of the ways, on a Locker in memory whose leases last for an hour, and another one. The
// hook of the Locker ends by it at the next event of a kind that was given to endAt.
func abnormally(
	t *testing.T, test func(t *testing.T, s *scripted, end func(), endAt func(event.Kind), l, other *leasetable.Locker),
) {
	t.Helper()
	for how, end := range ways {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memory.NewServer(memory.Postgres)
				s := &scripted{Store: server.Store()}
				var at atomic.Value
				hook := func(_ context.Context, e sqllock.Event) {
					if at.CompareAndSwap(e.Kind, event.Kind("none")) {
						end()
					}
				}
				l, other := keep(t, s, leasetable.WithTTL(time.Hour), leasetable.WithHook(hook)), keep(t, server.Store())
				kept := take(t, l, "kept") // keeps the lease alive
				test(t, s, end, func(k event.Kind) { at.Store(k) }, l, other)
				release(t, take(t, l, "x"))
				release(t, take(t, other, "x"), kept)
			})
		})
	}
}

func TestAReleaseThatPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, s *scripted, end func(), _ func(event.Kind), l, _ *leasetable.Locker) {
		lock := take(t, l, "x")
		s.release = func(context.Context, *store.Request) (store.Result, error) {
			s.release = nil
			end()
			return store.Result{}, nil
		}
		mustNotReturn(t, func() { _ = lock.Release(t.Context()) })
	})
}

// I27.
func TestAReleaseInTheMiddleOfAnExtensionThatPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, s *scripted, end func(), _ func(event.Kind), l, _ *leasetable.Locker) {
		lock := take(t, l, "x")
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			_, _ = s.Store.Move(ctx, name, token, from, to)
			return false, errCut
		}
		s.again = func(context.Context, *store.Request) (store.Result, error) {
			s.again = nil
			end()
			return store.Result{}, nil
		}
		extended := make(chan struct{})
		go func() {
			defer close(extended)
			_ = lock.Extend(t.Context(), 10*time.Hour) // which of the two wins does not matter
		}()
		synctest.Wait()
		mustNotReturn(t, func() { _ = lock.Release(t.Context()) })
		<-extended
		s.move = nil
	})
}

func TestAHandoffThatPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, s *scripted, end func(), _ func(event.Kind), l, _ *leasetable.Locker) {
		lock := take(t, l, "x")
		next := line(t, l, "x", 1)
		s.handOff = func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
			s.handOff = nil
			_, _, _ = s.Store.HandOff(ctx, h, n, metadata)
			end()
			return 0, false, nil
		}
		mustNotReturn(t, func() { _ = lock.Release(t.Context()) })
		release(t, mustGet(t, next))
	})
}

func TestAnAcquisitionThatPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, s *scripted, end func(), _ func(event.Kind), l, _ *leasetable.Locker) {
		release(t, take(t, l, "x")) // the name has a row
		s.free = func(ctx context.Context, req *store.Request) (store.Result, error) {
			s.free = nil
			_, _ = s.Store.AcquireFree(ctx, req)
			end()
			return store.Result{}, nil
		}
		mustNotReturn(t, func() { _, _ = l.TryAcquire(t.Context(), "x") })
	})
}

func TestAWaitWhoseHookPanicsKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, _ *scripted, _ func(), endAt func(event.Kind), l, other *leasetable.Locker) {
		lock := take(t, other, "x")
		endAt(event.Waiting)
		mustNotReturn(t, func() { _, _ = l.Acquire(t.Context(), "x") })
		release(t, lock)
	})
}

func TestALockWhoseHookPanicsIsReleased(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, _ *scripted, _ func(), endAt func(event.Kind), l, _ *leasetable.Locker) {
		endAt(event.Acquired)
		mustNotReturn(t, func() { _, _ = l.TryAcquire(t.Context(), "x", leasetable.WithHoldAtLeast(time.Hour)) })
	})
}

// A hook counts the locks that are held, and the acquisitions that wait. It does not return from one event, after it has
// counted that.
func TestGaugesAreRightAfterAHookThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for how, end := range ways {
		for _, at := range []event.Kind{event.Waiting, event.Waited, event.Acquired} {
			t.Run(how+" at "+string(at), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					server := memory.NewServer(memory.Postgres)
					var locks, waiters, ended atomic.Int64
					l := keep(t, server.Store(), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
						switch e.Kind {
						case event.Acquired:
							locks.Add(1)
						case event.Released, event.Lost:
							locks.Add(-1)
						case event.Waiting:
							waiters.Add(1)
						case event.Waited:
							waiters.Add(-1)
						}
						if e.Kind == at && ended.Add(1) == 1 {
							end()
						}
					}))
					lock := take(t, keep(t, server.Store()), "x")
					time.AfterFunc(time.Second, func() { release(t, lock) })
					mustNotReturn(t, func() { _, _ = sqllock.AcquireAll(t.Context(), l, []string{"a", "x"}) })
					if locks.Load() != 0 || waiters.Load() != 0 {
						t.Errorf("%d locks, %d waiters", locks.Load(), waiters.Load())
					}
				})
			})
		}
	}
}

// The other name is told as given back, and why.
func TestAHookThatPanicsIsTheReasonThatTheOtherNameIsGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var failed []string
		panicked := false
		l := keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			switch {
			case e.Kind == event.Failed:
				failed = append(failed, e.Err.Error())
			case e.Kind == event.Acquired && !panicked:
				panicked = true
				panic("a hook")
			}
		}))
		mustNotReturn(t, func() { _, _ = sqllock.AcquireAll(t.Context(), l, []string{"a", "b"}) })
		if len(failed) != 1 || !strings.Contains(failed[0], "panicked") {
			t.Errorf("told %q", failed)
		}
	})
}

func TestAHookThatEndsItsGoroutineLeavesNoneOfSeveralNamesHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, _ *scripted, _ func(), endAt func(event.Kind), l, _ *leasetable.Locker) {
		endAt(event.Acquired)
		mustNotReturn(t, func() { _, _ = l.TryAcquireAll(t.Context(), []string{"x", "y"}) })
		endAt(event.Acquired)
		mustNotReturn(t, func() { _, _ = sqllock.AcquireAll(t.Context(), l, []string{"x", "y"}) })
	})
}

// Nobody has the ticket. I28.
func TestAnExportWhoseHookPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, _ *scripted, _ func(), endAt func(event.Kind), l, _ *leasetable.Locker) {
		lock := take(t, l, "x")
		endAt(event.Released)
		mustNotReturn(t, func() { _, _ = lock.Export(t.Context(), 24*time.Hour) })
		synctest.Wait()
	})
}

// A driver: nobody renews the lease any more, and its row stays until it expires, as the holder may be at work. I3, I19.
func TestALeaseWhoseRenewalEndsItsGoroutineIsOver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store(), renew: func(context.Context, []byte) (bool, int64, error) {
			runtime.Goexit()
			return false, 0, nil
		}}
		lock := take(t, keep(t, s, leasetable.WithTTL(time.Hour)), "x")
		pass(21 * time.Minute)
		if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrExpired) {
			t.Errorf("the holder was told %v", cause)
		}
		if _, err := keep(t, server.Store()).TryAcquire(t.Context(), "x"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("the next holder: %v", err)
		}
	})
}

func TestAHookThatEndsItsGoroutineStopsNoRenewal(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		hook := func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Renewed {
				told.Add(1)
				runtime.Goexit()
			}
		}
		lock := take(t, keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithTTL(time.Hour), leasetable.WithHook(hook)), "x")
		pass(5 * time.Hour)
		if told := told.Load(); told < 10 {
			t.Errorf("it was told of %d renewals", told)
		}
		release(t, lock)
	})
}

// Nobody has the ticket. I28.
func TestAnExportWhoseDriverPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	abnormally(t, func(t *testing.T, s *scripted, end func(), _ func(event.Kind), l, _ *leasetable.Locker) {
		s.move = func(context.Context, string, int64, []byte, []byte) (bool, error) {
			s.move = nil
			end()
			return false, nil
		}
		lock := take(t, l, "x")
		mustNotReturn(t, func() { _, _ = lock.Export(t.Context(), 24*time.Hour) })
		synctest.Wait()
	})
}
