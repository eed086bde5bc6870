package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// races makes a release and a cancellation coincide with the grant of a lock, 10,000 times (500 with -short) or as
// often as possible in 10 s (30 s if tests may take Long), and checks what is left. I43.
func races(t *testing.T, s sessions) {
	const names, lockers = 16, 4
	rounds, most := 10_000, 10*time.Second
	if testing.Short() {
		rounds = 500
	}
	if Long() {
		most = 30 * time.Second
	}
	r := &race{}
	all := make([]Locker, lockers) // one half holds, the other half waits
	for i := range all {
		all[i] = s.open(t)
	}
	began := time.Now()
	var running sync.WaitGroup
	for i := range names {
		running.Go(func() {
			holder, waiter := all[i%(lockers/2)], all[lockers/2+i%(lockers/2)]
			for time.Since(began) < most && int(r.begun.Add(1)) <= rounds {
				if err := r.round(t.Context(), holder, waiter, nameOf(t, i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	running.Wait()
	rounds = min(rounds, int(r.begun.Load()))
	granted := int(r.granted.Load())
	t.Logf("%d of %d waits were granted, %d of them when they were cancelled already; a wait lasts %v; %v", granted, rounds, r.late.Load(), time.Duration(r.usual.Load()), time.Since(began))
	if granted < rounds/100 || granted > rounds-rounds/100 {
		t.Errorf("%d of %d waits were granted: they and their ends did not meet", granted, rounds)
	}

	fresh := s.open(t)
	for i := range names {
		MustRelease(t, MustAcquire(t, fresh, nameOf(t, i)))
	}
	Eventually(t, "nobody waits on the server", func() bool { return s.Locks(t) == 0 })
	Eventually(t, "the connections are few", func() bool { return s.Sessions(t) <= 2*(lockers+1) })
	for _, l := range append(all, fresh) {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	Eventually(t, "no connection is left", func() bool { return s.Sessions(t) == 0 })
}

func nameOf(t *testing.T, i int) string { return t.Name() + "/" + string(rune('A'+i)) }

type race struct {
	begun, granted, late atomic.Int64 // rounds; waits that were granted; granted waits that had been cancelled already
	usual                atomic.Int64 // how long an uncancelled wait lasts, in nanoseconds
}

// round makes the waiter wait for a lock of the holder. The lock is released some time before or after the wait reaches
// the server's queue. The wait is cancelled some time before or after that.
func (r *race) round(ctx context.Context, holder, waiter Locker, name string) error {
	bound, stop := context.WithTimeout(ctx, 2*soon)
	defer stop()
	lock, err := holder.Acquire(bound, name)
	if err != nil {
		return err
	}
	wait, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	began := time.Now()
	usual := r.usual.Load()
	release, end := time.Duration(0), time.Hour
	calm := usual == 0 || rand.IntN(16) == 0 // this round measures how long a wait lasts
	if !calm {
		release = time.Duration(usual/2 + rand.Int64N(usual+1)) // the wait has just reached the queue, or is about to
		end = max(0, release+time.Duration(rand.Int64N(usual)-usual/2))
	}
	released := make(chan error, 1)
	time.AfterFunc(release, func() { released <- lock.Release(bound) })
	defer time.AfterFunc(end, func() { cancel(errGone) }).Stop()
	next, err := waiter.Acquire(wait, name)
	ended := wait.Err() != nil
	two := err == nil && lock.Context().Err() == nil
	took := time.Since(began)
	if err := <-released; err != nil {
		return err
	}
	switch {
	case two:
		return errors.New("two hold the lock")
	case err == nil:
		r.granted.Add(1)
		if ended {
			r.late.Add(1)
		}
		if calm {
			r.usual.Store(min((7*usual+took.Nanoseconds())/8+1, int64(time.Second)))
		}
		return r.give(bound, next, holder)
	case !errors.Is(err, errGone):
		return err
	}
	return nil
}

// give releases a lock. In some rounds it first checks that the lock is held.
func (r *race) give(ctx context.Context, lock sqllock.Lock, other Locker) error {
	if rand.IntN(8) == 0 {
		if _, err := other.TryAcquire(ctx, lock.Name()); !errors.Is(err, sqllock.ErrHeld) {
			return errors.Join(errors.New("a lock that was granted is not held"), err)
		}
	}
	return lock.Release(ctx)
}
