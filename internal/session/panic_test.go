package session_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/session"
)

var shareOfX = session.Want[string]{Name: "x", Key: "x", Shared: true}

// mustPanic calls f, in which user code is to panic.
func mustPanic(t *testing.T, f func()) {
	t.Helper()
	if !panics(f) {
		t.Error("it did not panic")
	}
}

func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// A hook of the driver runs in the caller's goroutine if that borrows the connection.
func TestUserCodeThatPanicsLeavesTheWaitQueue(t *testing.T) {
	t.Parallel()
	calls := map[string]func(l *session.Locker[string], panics func()){
		"TryAcquire": func(l *session.Locker[string], panics func()) {
			panics()
			_, _ = l.TryAcquire(context.Background(), want("x"))
		},
		"Acquire": func(l *session.Locker[string], panics func()) {
			panics()
			_, _ = l.Acquire(context.Background(), want("x"))
		},
		"Release": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), want("x"))
			panics()
			_ = lock.Release(context.Background())
		},
		"Release of a share": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), shareOfX)
			panics()
			_ = lock.Release(context.Background())
		},
		"Release of a lock that others wait for": func(l *session.Locker[string], panics func()) {
			lock, _ := l.TryAcquire(context.Background(), want("x"))
			pass(2 * passTime) // from now on the server is asked
			go func() {
				if next, err := l.Acquire(context.Background(), want("x")); err == nil {
					_ = next.Release(context.Background())
				}
			}()
			synctest.Wait()
			_, _ = l.TryAcquire(context.Background(), want("y")) // the session does not watch its connection now
			synctest.Wait()
			panics()
			_ = lock.Release(context.Background())
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := s.newLocker(t)
				mustTry(t, l, "first") // a session
				synctest.Wait()
				mustPanic(t, func() { call(l, func() { s.delay(runs, lag{panics: true}, lag{}) }) })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				lock, err := l.Acquire(ctx, want("x"))
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := l.TryAcquire(t.Context(), shareOfX); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// impatient is a context that panics when it is asked whether it has ended, after it was asked so often.
type impatient struct {
	context.Context
	after int
}

func (c *impatient) Err() error {
	if c.after--; c.after < 0 {
		panic("a context")
	}
	return c.Context.Err()
}

func TestAContextThatPanicsPassesOnWhatItWasHanded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newServer().newLocker(t)
		before := mustTry(t, l, "x")
		ctx := &impatient{Context: t.Context(), after: math.MaxInt}
		over := make(chan struct{})
		go func() {
			defer close(over)
			mustPanic(t, func() { _, _ = l.Acquire(ctx, want("x")) })
		}()
		synctest.Wait()
		ctx.after = 0
		if err := before.Release(t.Context()); err != nil {
			t.Error(err)
		}
		<-over
		synctest.Wait()
		if _, err := l.TryAcquire(t.Context(), want("x")); errors.Is(err, sqllock.ErrHeld) {
			t.Error(err)
		}
	})
}

func TestAHookThatPanicsLeavesNothingHeld(t *testing.T) {
	t.Parallel()
	for _, w := range []session.Want[string]{want("x"), shareOfX} {
		for _, kind := range []event.Kind{event.Waiting, event.Acquired} {
			t.Run(fmt.Sprintf("%s, shared: %t", kind, w.Shared), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s := newServer()
					other := s.newLocker(t)
					l := s.newLockerWith(t, session.Limits{Sessions: 2, Locks: 100}, func(_ context.Context, e sqllock.Event) {
						if e.Kind == kind {
							panic("a hook")
						}
					})
					held := mustTry(t, other, "x")
					if kind == event.Acquired {
						mustRelease(t, held)
					}
					mustPanic(t, func() { _, _ = l.Acquire(context.Background(), w) })
					if kind == event.Waiting {
						mustRelease(t, held)
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					if _, err := other.Acquire(ctx, want("x")); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// gauges counts what a hook is told of: the locks that are held, and the acquisitions that wait. It panics at the first event
// of a kind, after it has counted it.
type gauges struct {
	panicAt        event.Kind
	locks, waiters int
}

func (g *gauges) hook(_ context.Context, e sqllock.Event) {
	switch e.Kind {
	case event.Acquired:
		g.locks++
	case event.Released, event.Lost:
		g.locks--
	case event.Waiting:
		g.waiters++
	case event.Waited:
		g.waiters--
	}
	if e.Kind == g.panicAt {
		g.panicAt = ""
		panic("a hook")
	}
}

func TestGaugesAreRightAfterAHookThatPanics(t *testing.T) {
	t.Parallel()
	for _, w := range []session.Want[string]{want("x"), shareOfX} {
		for _, kind := range []event.Kind{event.Waiting, event.Waited, event.Acquired} {
			t.Run(fmt.Sprintf("%s, shared: %t", kind, w.Shared), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					s, g := newServer(), &gauges{panicAt: kind}
					held := mustTry(t, s.newLocker(t), "x")
					time.AfterFunc(time.Second, func() { mustRelease(t, held) })
					l := s.newLockerTold(t, g.hook)
					mustPanic(t, func() { _, _ = l.Acquire(context.Background(), w) })
					if g.locks != 0 || g.waiters != 0 {
						t.Errorf("%d locks, %d waiters", g.locks, g.waiters)
					}
				})
			})
		}
	}
}

func mustRelease(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Callers that come while the server is asked wait for the same answer.
func TestAContextThatPanicsWhileTheServerIsAskedHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newServer().newLocker(t)
		try := func(ctx context.Context) {
			if _, err := l.TryAcquire(ctx, shareOfX); err != nil {
				t.Error(err)
			}
		}
		try(t.Context())
		for calls, over := 0, false; !over; calls++ { // the panic comes at each call of Err in turn
			pass(time.Second) // so that the server is asked again whether somebody waits for the exclusive lock
			over = !panics(func() { try(&impatient{Context: t.Context(), after: calls}) })
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			try(ctx)
			cancel()
		}
	})
}

// hurried is a context that panics when it is asked for its deadline, after it was asked so often.
type hurried struct {
	context.Context
	after int
}

func (c *hurried) Deadline() (time.Time, bool) {
	if c.after--; c.after < 0 {
		panic("a context")
	}
	return c.Context.Deadline()
}

func TestAWaitThatPanicsLeavesNoSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		mustTry(t, s.newLocker(t), "x")
		l := s.newLocker(t)
		for calls, over := 0, false; !over; calls++ { // the panic comes at each call of Deadline in turn
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			over = !panics(func() { _, _ = l.Acquire(&hurried{Context: ctx, after: calls}, want("x")) })
			cancel()
			if !over && calls > 100 {
				t.Fatal("it goes on")
			}
		}
		pass(time.Minute)
		if n := s.living(); n != 1 {
			t.Errorf("%d sessions are open; want that of the holder", n)
		}
	})
}

// Such a hook would end the session's goroutine.
func TestAHookThatEndsItsGoroutineEndsNoSession(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int64
		s := newServer()
		l := s.newLockerTold(t, func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Renewed {
				told.Add(1)
				runtime.Goexit()
			}
		})
		lock := mustTry(t, l, "x")
		pass(3 * s.ttl)
		if err := lock.Release(t.Context()); err != nil || told.Load() < 3 {
			t.Errorf("after %d heartbeats: %v", told.Load(), err)
		}
	})
}

// The goroutine that waits for all who share a lock is that of no caller.
func TestAHookThatEndsItsGoroutineKeepsNoSharerWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		l := s.newLockerTold(t, func(_ context.Context, e sqllock.Event) {
			if e.Kind == event.Retrying {
				runtime.Goexit()
			}
		})
		s.goAway(unreachable)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := l.Acquire(ctx, shareOfX); err == nil || ctx.Err() != nil {
			t.Errorf("while the server is away: %v", err)
		}
	})
}

// The session's goroutine uses the connection alone while it watches it. I42.
func TestADriverThatEndsItsGoroutineEndsTheSession(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{runs, pings} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := s.newLocker(t)
				lock, other := mustTry(t, l, "x"), mustTry(t, l, "y")
				pass(passTime)
				s.delay(kind, lag{exits: true}, lag{})
				if kind == runs {
					if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
						t.Errorf("the release whose statement did not return: %v", err)
					}
				}
				pass(s.ttl / 2) // a heartbeat is sent
				if cause := context.Cause(other.Context()); !errors.Is(cause, sqllock.ErrLost) {
					t.Errorf("the holder was told %v", cause)
				}
				if n := s.living(); n != 0 {
					t.Errorf("%d sessions go on", n)
				}
				mustRelease(t, mustTry(t, l, "x"))
			})
		})
	}
}

// Close waits for its session.
func TestADriverThatEndsItsGoroutineAsItClosesHangsNoClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.exitsAtEnd = true
		l := s.newLocker(t)
		mustTry(t, l, "x")
		l.Close()
	})
}
