package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/sqllock/sqllock"
)

// exclusionTests are about who holds which name.
type exclusionTests struct{ suite }

func (s exclusionTests) tests() []test {
	return []test{
		{"of two Lockers one holds a name", s.oneHolder},
		{"a Locker does not re-enter its own lock", s.noReentry},
		{"different names do not exclude each other", s.differentNames},
		{"an option that means nothing is ErrUnsupported", s.unsupported},
		{"a Locker holds hundreds of locks at once", s.manyNames},
	}
}

// I6.
func (s exclusionTests) oneHolder(t *testing.T) {
	a, b := s.twoLockers(t)
	lock := MustTry(t, a, t.Name())
	if lock.Name() != t.Name() {
		t.Errorf("Name() = %q", lock.Name())
	}
	MustBeHeld(t, b, t.Name())
	mustWaitInVain(t, func(ctx context.Context) error {
		_, err := b.Acquire(ctx, t.Name())
		return err
	})
	MustLive(t, lock)

	MustRelease(t, lock)
	// Not TryAcquire: the server may still grant the lock to the wait that has ended; it is then released in the
	// background.
	other := MustAcquire(t, b, t.Name())
	MustBeHeld(t, a, t.Name())
	MustRelease(t, other)
}

// I2, I40.
func (s exclusionTests) noReentry(t *testing.T) {
	l := s.locker(t)
	lock := MustTry(t, l, t.Name())
	MustBeHeld(t, l, t.Name())
	mustWaitInVain(t, func(ctx context.Context) error {
		_, err := l.Acquire(ctx, t.Name())
		return err
	})

	// The failed attempts must not have released the holder's lock.
	MustLive(t, lock)
	MustBeHeld(t, s.locker(t), t.Name())
	MustRelease(t, lock)
}

func (s exclusionTests) differentNames(t *testing.T) {
	a, b := s.twoLockers(t)
	one, two := MustTry(t, a, t.Name()+"/one"), MustTry(t, b, t.Name()+"/two")
	MustBeHeld(t, b, t.Name()+"/one")
	MustBeHeld(t, a, t.Name()+"/two")
	MustRelease(t, one)
	MustBeHeld(t, a, t.Name()+"/two")
	MustRelease(t, two)
}

func (s exclusionTests) unsupported(t *testing.T) {
	if s.opts.Unsupported == nil {
		t.Skip("this backend supports every option")
	}
	l := s.locker(t)
	_, err := l.TryAcquire(bounded(t), t.Name(), s.opts.Unsupported)
	mustMatch(t, err, sqllock.ErrUnsupported)
	_, err = l.Acquire(bounded(t), t.Name(), s.opts.Unsupported)
	mustMatch(t, err, sqllock.ErrUnsupported)
	MustRelease(t, MustTry(t, s.locker(t), t.Name()))
}

func (s exclusionTests) manyNames(t *testing.T) {
	const n = 200
	a, b := s.twoLockers(t)
	name := func(i int) string { return fmt.Sprintf("%s/%d", t.Name(), i) }

	locks := make([]sqllock.Lock, n)
	inParallel(t, n, func(ctx context.Context, i int) (err error) {
		locks[i], err = a.TryAcquire(ctx, name(i))
		return err
	})
	inParallel(t, n, func(ctx context.Context, i int) error {
		if _, err := TryAnswered(ctx, b, name(i)); !errors.Is(err, sqllock.ErrHeld) {
			return fmt.Errorf("TryAcquire(%q) of a held lock: %w", name(i), err)
		}
		return nil
	})
	inParallel(t, n, func(ctx context.Context, i int) error { return locks[i].Release(ctx) })
	inParallel(t, n, func(ctx context.Context, i int) error {
		lock, err := b.TryAcquire(ctx, name(i))
		if err != nil {
			return err
		}
		return lock.Release(ctx)
	})
}

// inParallel makes n concurrent calls of f, and fails the test if one of them fails.
func inParallel(t *testing.T, n int, f func(ctx context.Context, i int) error) {
	t.Helper()
	ctx := bounded(t)
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = f(ctx, i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
