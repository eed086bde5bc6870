package locktest

import (
	"testing"

	"github.com/sqllock/sqllock"
)

// closeTests are about a Locker that is closed.
type closeTests struct{ suite }

func (s closeTests) tests() []test {
	return []test{
		{"a closed Locker returns ErrClosed", s.useAfterClose},
		{"closing ends the locks still held and frees their names", s.closeWhileHeld},
		{"closing ends a wait with ErrClosed", s.closeWhileWaiting},
	}
}

func (s closeTests) useAfterClose(t *testing.T) {
	used, unused := s.twoLockers(t)
	MustRelease(t, MustTry(t, used, t.Name()))
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

func (s closeTests) closeWhileHeld(t *testing.T) {
	a, b := s.twoLockers(t)
	lock, other := MustTry(t, a, t.Name()), MustTry(t, b, t.Name()+"/other")
	MustBeHeld(t, b, t.Name())
	mustClose(t, a)
	mustBeOver(t, lock, sqllock.ErrClosed)
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrClosed)
	mustBecomeFree(t, b, t.Name())
	MustLive(t, other) // it belongs to another Locker
	MustRelease(t, other)
}

func (s closeTests) closeWhileWaiting(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	MustBeHeld(t, b, t.Name())
	elsewhere, inLine := startWaiter(bounded(t), b, t.Name()), startWaiter(bounded(t), b, t.Name())
	elsewhere.mustBlock(t)
	inLine.mustBlock(t)
	mustClose(t, b)
	for _, w := range []waiter{elsewhere, inLine} {
		err := w.result(t).err
		mustMatch(t, err, sqllock.ErrClosed)
		if sqllock.IsRetryable(err) {
			t.Errorf("IsRetryable(%v) = true", err)
		}
	}
	MustLive(t, lock)
	MustRelease(t, lock)
	mustBecomeFree(t, s.locker(t), t.Name())
}

func mustClose(t *testing.T, l Locker) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}
