package locktest

import (
	"context"
	"testing"

	"github.com/sqllock/sqllock"
)

// lifetimeTests are about the context of a lock, its release and its loss.
type lifetimeTests struct{ suite }

func (s lifetimeTests) tests() []test {
	return []test{
		{"releasing twice returns the same", s.releaseTwice},
		{"releasing with a dead context works", s.releaseDeadContext},
		{"concurrent releases return the same", s.releaseConcurrently},
		{"the lock context ends before another can hold the lock", s.endsBeforeNext},
		{"the lock context has the values but not the end of the acquiring context", s.contextValues},
		{"a released name can be taken again by the same Locker", s.takeAgain},
		{"a lost lock ends its context with ErrLost and so does Release", s.lost},
		{"after a loss the name can be acquired anew", s.acquireAfterLoss},
	}
}

func (s lifetimeTests) releaseTwice(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	MustRelease(t, lock)
	other := MustTry(t, b, t.Name())
	MustRelease(t, lock)
	MustBeHeld(t, a, t.Name()) // the second Release did not release other
	MustLive(t, other)
	MustRelease(t, other)
}

func (s lifetimeTests) releaseDeadContext(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	if err := lock.Release(deadContext(t)); err != nil {
		t.Fatal(err)
	}
	MustRelease(t, MustTry(t, b, t.Name()))
}

func (s lifetimeTests) releaseConcurrently(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	inParallel(t, 8, func(ctx context.Context, _ int) error { return lock.Release(ctx) })
	mustBeOver(t, lock, sqllock.ErrReleased)
	MustRelease(t, MustTry(t, b, t.Name()))
}

// I1.
func (s lifetimeTests) endsBeforeNext(t *testing.T) {
	a, b := s.twoLockers(t)
	for range 5 {
		lock := MustAcquire(t, a, t.Name())
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
		MustRelease(t, lock)
		if err := receive(t, seen, soon, "the next holder"); err != nil {
			t.Fatal(err)
		}
	}
}

func (s lifetimeTests) contextValues(t *testing.T) {
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
		MustLive(t, lock)
		MustBeHeld(t, l, t.Name())
		MustRelease(t, lock)
	}
}

func (s lifetimeTests) takeAgain(t *testing.T) {
	l := s.locker(t)
	for range 20 {
		MustRelease(t, MustTry(t, l, t.Name()))
		MustRelease(t, MustAcquire(t, l, t.Name()))
	}
}

// I20.
func (s lifetimeTests) lost(t *testing.T) {
	l := s.locker(t)
	lock := MustTry(t, l, t.Name())
	s.lose(t, t.Name())
	mustEnd(t, lock, sqllock.ErrLost)
	err := lock.Release(t.Context())
	mustMatch(t, err, sqllock.ErrLost)
	if again := lock.Release(t.Context()); again == nil || again.Error() != err.Error() {
		t.Errorf("the second Release returned %v, the first %v", again, err)
	}
	mustBeOver(t, lock, sqllock.ErrLost)
}

func (s lifetimeTests) acquireAfterLoss(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	s.lose(t, t.Name())
	// The Locker relies on what it knows: it can acquire the name again once it has learned of the loss.
	mustEnd(t, lock, sqllock.ErrLost)
	again := MustAcquire(t, a, t.Name())
	MustLive(t, again)
	MustBeHeld(t, b, t.Name())

	// The release of the lost lock must not release its successor.
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	MustLive(t, again)
	MustBeHeld(t, b, t.Name())
	MustRelease(t, again)
}
