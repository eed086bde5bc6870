package locktest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// limits tests the limits of a Locker. I46.
func limits(t *testing.T, db sessions) {
	newLocker := func(t *testing.T, connections int) Locker {
		t.Helper()
		return open(t, db, Settings{Connections: connections})
	}
	s := suite{newLocker: db.locker}
	t.Run("waits for more names than there are connections to wait on all end with the lock", func(t *testing.T) {
		const names, limit = 6, 4
		holder := s.locker(t)
		l := newLocker(t, limit)
		name := func(i int) string { return fmt.Sprintf("%s/%d", t.Name(), i) }
		held := make([]sqllock.Lock, names)
		waiters := make([]waiter, names)
		for i := range names {
			held[i] = MustTry(t, holder, name(i))
			waiters[i] = startWaiter(bounded(t), l, name(i))
		}
		for _, w := range waiters {
			w.mustBlock(t)
		}
		if n := db.Sessions(t); n > limit+1 { // one is the holder's
			t.Errorf("%d connections", n)
		}
		for i, lock := range held {
			MustRelease(t, lock)
			next := waiters[i].mustGet(t)
			MustBeHeld(t, holder, name(i))
			if i%2 == 0 {
				MustRelease(t, next) // the other waiters keep their connections
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})

	t.Run("goroutines that hand a lock on among themselves let another Locker have it", func(t *testing.T) {
		a, b := s.twoLockers(t)
		var busy sync.WaitGroup
		ctx, cancel := context.WithCancel(bounded(t))
		for range 8 {
			busy.Go(func() {
				for ctx.Err() == nil {
					err := sqllock.Do(ctx, a, t.Name(), func(context.Context) error { return nil })
					if err != nil && ctx.Err() == nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 5 {
			MustRelease(t, MustAcquire(t, b, t.Name()))
		}
		cancel()
		busy.Wait()
	})

	t.Run("more locks than the connections may hold are ErrLimit and cost no lock", func(t *testing.T) {
		l := newLocker(t, 2)
		name := func(i int) string { return fmt.Sprintf("%s/%d", t.Name(), i) }
		locks := make([]sqllock.Lock, db.server.LocksPerConnection)
		inParallel(t, db.server.LocksPerConnection, func(ctx context.Context, i int) (err error) {
			locks[i], err = l.TryAcquire(ctx, name(i))
			return err
		})
		_, err := l.TryAcquire(t.Context(), "one more")
		mustMatch(t, err, sqllock.ErrLimit)
		if !sqllock.IsRetryable(err) {
			t.Errorf("IsRetryable(%v) = false", err)
		}
		_, err = l.Acquire(t.Context(), "one more")
		mustMatch(t, err, sqllock.ErrLimit)
		MustRelease(t, locks[0])
		MustRelease(t, MustTry(t, l, "one more"))
		for _, lock := range locks[1:] {
			MustLive(t, lock)
		}
		inParallel(t, db.server.LocksPerConnection-1, func(ctx context.Context, i int) error { return locks[i+1].Release(ctx) })
	})
}

// serveAll makes Lockers alternate at a lock until each has held it a few times. Each holds it for about as long as a
// waiter stays in the server's queue at a time, because holders could fall into step with waiters. I47.
func serveAll(t *testing.T, s sessions) {
	const lockers, times = 3, 3
	hold := s.server.Slice
	ctx, cancel := context.WithTimeout(t.Context(), 8*lockers*times*hold+soon)
	defer cancel()
	var served [lockers]atomic.Int32
	var all sync.WaitGroup
	for i := range lockers {
		l := s.open(t)
		all.Go(func() {
			for ctx.Err() == nil {
				lock, err := l.Acquire(ctx, t.Name())
				if err != nil {
					return
				}
				served[i].Add(1)
				least := int32(times)
				for j := range served {
					least = min(least, served[j].Load())
				}
				if least == times {
					cancel()
				}
				select {
				case <-time.After(hold):
				case <-ctx.Done():
				}
				_ = lock.Release(t.Context())
			}
		})
	}
	all.Wait()
	for i := range served {
		if n := served[i].Load(); n < times {
			t.Errorf("Locker %d was served %d times", i, n)
		}
	}
}

// MustWaitWithOneConnection waits with l for a lock of holder. The server gives l only one connection.
func MustWaitWithOneConnection(t *testing.T, holder, l sqllock.Locker) {
	t.Helper()
	lock := MustTry(t, holder, t.Name())
	MustBeHeld(t, l, t.Name())
	waiting := startWaiter(bounded(t), l, t.Name())
	waiting.mustBlock(t)
	MustRelease(t, lock)
	MustRelease(t, waiting.mustGet(t))
}

// Connections tests the errors of Lockers on a server that accepts at most so many connections, and that no lock is
// lost.
func Connections(t *testing.T, db Database, most int) {
	t.Helper()
	newLocker := func(t *testing.T) Locker { t.Helper(); return open(t, db, Settings{}) }
	var lockers []Locker
	var locks []sqllock.Lock
	for {
		l := newLocker(t)
		lock, err := l.TryAcquire(bounded(t), fmt.Sprint("lock ", len(locks)))
		if errors.Is(err, sqllock.ErrLimit) {
			MustBeFull(t, l)
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lockers, locks = append(lockers, l), append(locks, lock)
		if len(locks) > most {
			t.Fatalf("%d Lockers have a connection of a server that gives %d", len(locks), most)
		}
	}
	t.Logf("%d Lockers have a connection of a server that gives %d", len(locks), most)
	for _, lock := range locks {
		MustLive(t, lock)
	}
	if err := lockers[0].Close(); err != nil {
		t.Fatal(err)
	}
	late := newLocker(t)
	Eventually(t, "the server lets somebody in", func() bool {
		lock, err := late.TryAcquire(t.Context(), t.Name())
		if err == nil {
			MustRelease(t, lock)
		}
		return err == nil
	})
	for _, lock := range locks[1:] {
		MustRelease(t, lock)
	}
}

// MustBeFull checks the error of a server that has no connection left.
func MustBeFull(t *testing.T, l sqllock.Locker) {
	t.Helper()
	_, err := l.TryAcquire(bounded(t), t.Name())
	if !errors.Is(err, sqllock.ErrLimit) || !sqllock.IsRetryable(err) {
		t.Errorf("the error of a server without a free connection is %v; it should match ErrLimit and be retryable", err)
	}
}
