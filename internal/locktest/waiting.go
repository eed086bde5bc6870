package locktest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sqllock/sqllock"
)

// waitTests are about waiters that get the lock.
type waitTests struct{ suite }

func (s waitTests) tests() []test {
	return []test{
		{"a waiter of another Locker gets the lock when it is released", s.wakeOther},
		{"a waiter of the same Locker gets the lock when it is released", s.wakeLocal},
		{"waiters of one Locker are served in the order they came", s.localOrder},
		{"waiters of many Lockers all get the lock", s.everybodyServed},
	}
}

func (s waitTests) wakeOther(t *testing.T) {
	a, b := s.twoLockers(t)
	s.wake(t, a, b)
}

func (s waitTests) wakeLocal(t *testing.T) {
	l := s.locker(t)
	s.wake(t, l, l)
}

// wake makes waiter wait for a lock of holder, several times.
func (s waitTests) wake(t *testing.T, holder, waiter Locker) {
	t.Helper()
	for range 3 {
		lock := MustTry(t, holder, t.Name())
		MustBeHeld(t, waiter, t.Name())
		w := startWaiter(bounded(t), waiter, t.Name())
		w.mustBlock(t)
		MustLive(t, lock)
		if len(w.done) > 0 {
			t.Fatalf("Acquire returned while the lock is held: %v", w.result(t).err)
		}
		MustRelease(t, lock)
		next := w.mustGet(t)
		MustLive(t, next)
		MustBeHeld(t, holder, t.Name())
		MustRelease(t, next)
	}
}

func (s waitTests) localOrder(t *testing.T) {
	l := s.locker(t)
	lock := MustTry(t, l, t.Name())
	waiters := make([]waiter, 8)
	for i := range waiters {
		waiters[i] = startWaiter(bounded(t), l, t.Name())
		waiters[i].mustBlock(t)
	}
	for i, w := range waiters {
		MustRelease(t, lock)
		lock = w.mustGet(t)
		for j, later := range waiters[i+1:] {
			if len(later.done) > 0 {
				t.Fatalf("waiter %d was served before or with waiter %d", i+1+j, i)
			}
		}
	}
	MustRelease(t, lock)
}

// everybodyServed has several Lockers with several goroutines each. All of them want the lock several times, and no two
// of them may hold it at once.
func (s waitTests) everybodyServed(t *testing.T) {
	const lockers, goroutines, rounds = 3, 3, 4
	var (
		all    sync.WaitGroup
		inside atomic.Int32
		ctx    = bounded(t)
	)
	for range lockers {
		l := s.locker(t)
		for range goroutines {
			all.Go(func() {
				for range rounds {
					err := sqllock.Do(ctx, l, t.Name(), func(context.Context) error {
						if n := inside.Add(1); n != 1 {
							t.Errorf("%d hold the lock", n)
						}
						inside.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}
