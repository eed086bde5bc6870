package locktest

import (
	"context"
	"testing"

	"github.com/sqllock/sqllock"
)

func (s suite) releaseTwice(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := mustTry(t, a, t.Name())
	mustRelease(t, lock)
	other := mustTry(t, b, t.Name())
	mustRelease(t, lock)
	mustBeHeld(t, a, t.Name()) // the second release was not other's
	mustLive(t, other)
	mustRelease(t, other)
}

func (s suite) releaseDeadContext(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := mustTry(t, a, t.Name())
	if err := lock.Release(deadContext(t)); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, mustTry(t, b, t.Name()))
}

func (s suite) releaseConcurrently(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := mustTry(t, a, t.Name())
	inParallel(t, 8, func(ctx context.Context, _ int) error { return lock.Release(ctx) })
	mustBeOver(t, lock, sqllock.ErrReleased)
	mustRelease(t, mustTry(t, b, t.Name()))
}

func (s suite) endsBeforeNext(t *testing.T) {
	a, b := s.twoLockers(t)
	for range 5 {
		lock := mustAcquire(t, a, t.Name())
		seen := make(chan error, 1)
		go func() {
			next, err := b.Acquire(bounded(t), t.Name())
			if err != nil {
				seen <- err
				return
			}
			if lock.Context().Err() == nil {
				t.Error("two hold the lock")
			}
			seen <- next.Release(t.Context())
		}()
		mustRelease(t, lock)
		if err := receive(t, seen, soon, "the next holder"); err != nil {
			t.Fatal(err)
		}
	}
}

func (s suite) contextValues(t *testing.T) {
	type key struct{}
	l := s.locker(t)
	for _, acquire := range []func(context.Context, string, ...sqllock.Option) (sqllock.Lock, error){l.TryAcquire, l.Acquire} {
		ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), key{}, "value"), soon)
		lock, err := acquire(ctx, t.Name())
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if got := lock.Context().Value(key{}); got != "value" {
			t.Errorf("the value in the lock's context is %v", got)
		}
		if _, has := lock.Context().Deadline(); has {
			t.Error("the lock's context has the acquisition's deadline")
		}
		mustLive(t, lock)
		mustBeHeld(t, l, t.Name())
		mustRelease(t, lock)
	}
}

func (s suite) takeAgain(t *testing.T) {
	l := s.locker(t)
	for range 20 {
		mustRelease(t, mustTry(t, l, t.Name()))
		mustRelease(t, mustAcquire(t, l, t.Name()))
	}
}

func (s suite) lost(t *testing.T) {
	l := s.locker(t)
	lock := mustTry(t, l, t.Name())
	s.lose(t, t.Name())
	mustEnd(t, lock, sqllock.ErrLost)
	err := lock.Release(t.Context())
	mustMatch(t, err, sqllock.ErrLost)
	if again := lock.Release(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("the second Release returned %v, the first %v", again, err)
	}
	mustBeOver(t, lock, sqllock.ErrLost)
}

func (s suite) acquireAfterLoss(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := mustTry(t, a, t.Name())
	s.lose(t, t.Name())
	// The same Locker goes by what it knows: once it is told, the name is free for it too.
	mustEnd(t, lock, sqllock.ErrLost)
	again := mustAcquire(t, a, t.Name())
	mustLive(t, again)
	mustBeHeld(t, b, t.Name())

	// The end of the lost one must not be the end of its successor.
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	mustLive(t, again)
	mustBeHeld(t, b, t.Name())
	mustRelease(t, again)
}
