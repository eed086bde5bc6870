package locktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

const (
	// soon bounds every wait for an event that must happen, on a busy machine. A lock that is left held is detected if
	// sessions and leases last longer.
	soon = time.Minute
	// shortly is the duration of a wait that must fail.
	shortly = 150 * time.Millisecond
)

// errGone is the cause with which tests cancel contexts.
var errGone = errors.New("the caller has gone")

// bounded returns a context for operations that must succeed.
func bounded(t *testing.T) context.Context {
	t.Helper()
	return endingIn(t, soon)
}

func endingIn(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), d, context.DeadlineExceeded)
	t.Cleanup(cancel)
	return ctx
}

// deadContext returns a context that has already ended, with errGone.
func deadContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errGone)
	return ctx
}

// MustTry acquires a lock that is free.
func MustTry[L sqllock.Lock](t *testing.T, l sqllock.Acquirer[L], name string, opts ...sqllock.Option) L {
	t.Helper()
	lock, err := TryFree(bounded(t), l, name, opts...)
	if err != nil {
		t.Fatalf("TryAcquire(%q): %v", name, err)
	}
	return lock
}

// MustAcquire waits for a lock, for a limited time.
func MustAcquire(t *testing.T, l sqllock.Locker, name string) sqllock.Lock {
	t.Helper()
	lock, err := l.Acquire(bounded(t), name)
	if err != nil {
		t.Fatalf("Acquire(%q): %v", name, err)
	}
	return lock
}

// MustRelease releases a lock that was not lost.
func MustRelease(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatalf("Release of %q: %v", lock.Name(), err)
	}
	mustBeOver(t, lock, sqllock.ErrReleased)
}

// TryFree tries for a lock that is free. If the database does not answer in time, as on a busy machine, TryFree waits for the
// lock: the name may be held until the Locker has given back what it may have acquired.
func TryFree[L sqllock.Lock](ctx context.Context, l sqllock.Acquirer[L], name string, opts ...sqllock.Option) (L, error) {
	lock, err := l.TryAcquire(ctx, name, opts...)
	asRefused := errors.Is(err, sqllock.ErrHeld) || errors.Is(err, sqllock.ErrLimit) || errors.Is(err, sqllock.ErrReadOnly)
	if sqllock.IsRetryable(err) && !asRefused {
		return l.Acquire(ctx, name, opts...)
	}
	return lock, err
}

// TryAnswered tries for a lock until the database answers: on a busy machine it may not do so in time.
func TryAnswered[L sqllock.Lock](ctx context.Context, l sqllock.Acquirer[L], name string, opts ...sqllock.Option) (lock L, err error) {
	for {
		lock, err = l.TryAcquire(ctx, name, opts...)
		if err == nil || errors.Is(err, sqllock.ErrHeld) || !sqllock.IsRetryable(err) || ctx.Err() != nil {
			return lock, err
		}
	}
}

// MustBeHeld proves that name is held: l does not get the lock, and the error says so.
func MustBeHeld(t *testing.T, l sqllock.Locker, name string) {
	t.Helper()
	lock, err := TryAnswered(bounded(t), l, name)
	if err == nil {
		t.Fatalf("TryAcquire(%q) got a lock that is held", name)
	}
	var held *sqllock.HeldError
	if lock != nil || !errors.Is(err, sqllock.ErrHeld) || !errors.As(err, &held) || held.Name != name {
		t.Fatalf("TryAcquire(%q) = %v, %v; want no lock and a *HeldError", name, lock, err)
	}
	if !sqllock.IsRetryable(err) {
		t.Errorf("IsRetryable(%v) = false", err)
	}
}

// mustBecomeFree waits until l acquires name, and releases it.
func mustBecomeFree(t *testing.T, l sqllock.Locker, name string) {
	t.Helper()
	MustRelease(t, MustAcquire(t, l, name))
}

// mustWaitInVain acquires a lock that is held, until the deadline. On a busy machine the deadline can pass before the
// Locker has read who holds the lock; then mustWaitInVain tries again with a longer deadline.
func mustWaitInVain(t *testing.T, acquire func(ctx context.Context) error) {
	t.Helper()
	for d := shortly; ; d *= 2 {
		err := acquire(endingIn(t, d))
		mustMatch(t, err, context.DeadlineExceeded)
		if errors.Is(err, sqllock.ErrHeld) {
			return
		}
		if d > soon {
			t.Fatalf("within %v nobody was seen to hold the lock: %v", d, err)
		}
	}
}

// MustLive checks that a lock has not ended.
func MustLive(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if err := lock.Context().Err(); err != nil {
		t.Fatalf("the lock %q has ended: %v", lock.Name(), context.Cause(lock.Context()))
	}
}

// mustBeOver checks that a lock has already ended, and why.
func mustBeOver(t *testing.T, lock sqllock.Lock, cause error) {
	t.Helper()
	if ctx := lock.Context(); ctx.Err() == nil || !errors.Is(context.Cause(ctx), cause) {
		t.Fatalf("the context of lock %q ended with %v; want %v", lock.Name(), context.Cause(ctx), cause)
	}
}

// mustEnd waits until a lock ends, and checks why.
func mustEnd(t *testing.T, lock sqllock.Lock, cause error) {
	t.Helper()
	receive(t, lock.Context().Done(), soon, fmt.Sprintf("the end of lock %q", lock.Name()))
	mustBeOver(t, lock, cause)
}

// MustBeLost waits until the holder of a lock learns of its loss.
func MustBeLost(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	mustEnd(t, lock, sqllock.ErrLost)
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
}

func mustMatch(t *testing.T, err error, targets ...error) {
	t.Helper()
	if err == nil {
		t.Fatal("there is no error")
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Fatalf("the error is %v; it should match %q", err, target)
		}
	}
}

// outcome is the result of an Acquire in another goroutine.
type outcome struct {
	lock sqllock.Lock
	err  error
}

// waiter is an Acquire in another goroutine.
type waiter struct {
	done chan outcome
	id   string // of the goroutine
}

func startWaiter(ctx context.Context, l sqllock.Locker, name string) waiter {
	w := waiter{done: make(chan outcome, 1)}
	id := make(chan string, 1)
	go func() {
		id <- goroutineID()
		lock, err := l.Acquire(ctx, name)
		w.done <- outcome{lock, err}
	}()
	w.id = <-id
	return w
}

// result waits until Acquire returns.
func (w waiter) result(t *testing.T) outcome {
	t.Helper()
	return receive(t, w.done, soon, "the end of Acquire")
}

func (w waiter) mustGet(t *testing.T) sqllock.Lock {
	t.Helper()
	out := w.result(t)
	if out.err != nil {
		t.Fatalf("Acquire: %v", out.err)
	}
	return out.lock
}

var (
	stacks  = make([]byte, 1<<20) // of all goroutines, guarded by looking
	looking sync.Mutex
)

// mustBlock waits until the goroutine is blocked in Acquire, or Acquire has returned. It looks seldom: to see the stacks stops
// all goroutines.
func (w waiter) mustBlock(t *testing.T) {
	t.Helper()
	Eventually(t, "Acquire blocks", func() bool {
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // between two looks
		looking.Lock()
		defer looking.Unlock()
		n := runtime.Stack(stacks, true)
		for ; n == len(stacks); n = runtime.Stack(stacks, true) { // cut off
			stacks = make([]byte, 2*len(stacks))
		}
		_, rest, _ := bytes.Cut(stacks[:n], []byte("goroutine "+w.id+" ["))
		return len(w.done) > 0 || bytes.HasPrefix(rest, []byte("select")) || bytes.HasPrefix(rest, []byte("chan receive"))
	})
}

func goroutineID() string {
	buf := make([]byte, 64)
	return strings.Fields(string(buf[:runtime.Stack(buf, false)]))[1]
}

// receive waits for a value, or for the closing of ch.
func receive[T any](t *testing.T, ch <-chan T, within time.Duration, what string) T {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case v := <-ch:
		return v
	case <-timer.C:
		t.Fatalf("waited %v for %s", within, what)
		panic("unreachable")
	}
}

// Eventually polls until done returns true.
func Eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !Poll(bounded(t), done) {
		t.Fatalf("waited %v until %s", soon, what)
	}
}
