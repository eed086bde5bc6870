package locktest

import (
	"testing"

	"github.com/sqllock/sqllock"
)

func (s suite) useAfterClose(t *testing.T) {
	used, unused := s.twoLockers(t)
	mustRelease(t, mustTry(t, used, t.Name()))
	for _, l := range []Locker{used, unused} {
		mustClose(t, l)
		_, err := l.TryAcquire(bounded(t), t.Name())
		mustMatch(t, err, sqllock.ErrClosed)
		_, err = l.Acquire(bounded(t), t.Name())
		mustMatch(t, err, sqllock.ErrClosed)
		if sqllock.IsRetryable(err) {
			t.Errorf("IsRetryable(%v) = true", err)
		}
		mustClose(t, l)
	}
}

func (s suite) closeWhileHeld(t *testing.T) {
	a, b := s.twoLockers(t)
	lock, other := mustTry(t, a, t.Name()), mustTry(t, b, t.Name()+"/other")
	mustBeHeld(t, b, t.Name())
	mustClose(t, a)
	mustBeOver(t, lock, sqllock.ErrClosed)
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrClosed)
	mustBecomeFree(t, b, t.Name())
	mustLive(t, other) // another Locker's
	mustRelease(t, other)
}

func (s suite) closeWhileWaiting(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := mustTry(t, a, t.Name())
	mustBeHeld(t, b, t.Name())
	elsewhere, inLine := startWaiter(bounded(t), b, t.Name()), startWaiter(bounded(t), b, t.Name())
	elsewhere.mustBlock(t)
	inLine.mustBlock(t)
	mustClose(t, b)
	for _, w := range []waiter{elsewhere, inLine} {
		err := w.result(t, promptly).err
		mustMatch(t, err, sqllock.ErrClosed)
		if sqllock.IsRetryable(err) {
			t.Errorf("IsRetryable(%v) = true", err)
		}
	}
	mustLive(t, lock)
	mustRelease(t, lock)
	mustBecomeFree(t, s.locker(t), t.Name())
}

func mustClose(t *testing.T, l Locker) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}
