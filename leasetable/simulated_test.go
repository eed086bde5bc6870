package leasetable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// These are the shortest histories of what the simulation has found.

var errCut = &sqllock.OpError{Op: "answer", Err: errors.New("the connection broke")}

// scripted is a store in memory, some of whose steps a test replaces.
type scripted struct {
	*memory.Store
	release func(ctx context.Context, req *store.Request) (store.Result, error)
	again   func(ctx context.Context, req *store.Request) (store.Result, error)
	renew   func(ctx context.Context, id []byte) (bool, int64, error)
	handOff func(ctx context.Context, h store.Held, metadata []byte) (int64, bool, error)
	over    func(ctx context.Context, req *store.Request, from []byte) (int64, error)
}

func (s *scripted) Release(ctx context.Context, req *store.Request) (store.Result, error) {
	if s.release != nil {
		return s.release(ctx, req)
	}
	return s.Store.Release(ctx, req)
}

func (s *scripted) ReleasePatiently(ctx context.Context, req *store.Request) (store.Result, error) {
	if s.again != nil {
		return s.again(ctx, req)
	}
	return s.Store.ReleasePatiently(ctx, req)
}

func (s *scripted) Renew(ctx context.Context, id []byte) (bool, int64, error) {
	if s.renew != nil {
		return s.renew(ctx, id)
	}
	return s.Store.Renew(ctx, id)
}

func (s *scripted) HandOff(ctx context.Context, h store.Held, metadata []byte) (int64, bool, error) {
	if s.handOff != nil {
		return s.handOff(ctx, h, metadata)
	}
	return s.Store.HandOff(ctx, h, metadata)
}

func (s *scripted) Takeover(ctx context.Context, req *store.Request, from []byte) (int64, error) {
	if s.over != nil {
		return s.over(ctx, req, from)
	}
	return s.Store.Takeover(ctx, req, from)
}

// keep opens a Locker in memory.
func keep(t *testing.T, s store.Store) *leasetable.Locker {
	t.Helper()
	l, err := leasetable.Keep(s, leasetable.WithTTL(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// The first attempt frees the name, and its answer is lost. The second one comes when the lease is over. Nobody else has
// taken the name.
func TestAReleaseThatIsConfirmedAfterItsDeadlineIsNotALostLock(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		lock := take(t, keep(t, s), "x")
		attempts := 0
		s.release = func(ctx context.Context, req *store.Request) (store.Result, error) {
			got, err := s.Store.Release(ctx, req)
			if attempts++; attempts == 1 {
				pass(2 * time.Second)
				return store.Result{}, errCut
			}
			return got, err
		}
		s.renew = func(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }
		if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrExpired) || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the release says: %v", err)
		}
	})
}

// The first attempt frees the name, and its answer is lost, as are all that follow. Meanwhile a verification finds that
// the name is not held any more: not because somebody took it, but because of this release.
func TestAReleaseThatAVerificationHasSeenIsDone(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		lock := take(t, keep(t, s), "x")
		s.release = func(ctx context.Context, req *store.Request) (store.Result, error) {
			_, err := s.Store.Release(ctx, req)
			return store.Result{}, errors.Join(errCut, err)
		}
		s.again = func(context.Context, *store.Request) (store.Result, error) {
			pass(time.Second) // renewals go on
			return store.Result{}, errCut
		}
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			renewed, changes, err := s.Store.Renew(ctx, id)
			return renewed, changes + 1, err // a name of the lease was freed by force, it seems
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, take(t, keep(t, server.Store()), "x"))
	})
}

// The answer to a handoff is late. Meanwhile the name is released by force, and another process acquires and releases it.
// The next goroutine then gets a lock with a higher token than that, and not the one that was handed off.
func TestALockThatWasFreedByForceDuringItsHandoffIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, other := keep(t, s), keep(t, server.Store())
		lock := take(t, l, "x")
		s.handOff = func(ctx context.Context, h store.Held, metadata []byte) (int64, bool, error) {
			next, hasWaiter, err := s.Store.HandOff(ctx, h, metadata)
			pass(time.Second) // renewals go on
			return next, hasWaiter, err
		}
		next := make(chan *leasetable.Lease)
		go func() { next <- take(t, l, "x") }()
		synctest.Wait()
		released := make(chan error)
		go func() { released <- lock.Release(t.Context()) }()
		pass(10 * time.Millisecond)
		if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		between := take(t, other, "x")
		release(t, between)
		if err := <-released; err != nil {
			t.Error(err)
		}
		got := <-next
		if got.Token() <= between.Token() {
			t.Errorf("after token %d a lock with token %d was given", between.Token(), got.Token())
		}
		release(t, got)
	})
}

// The answer to a handoff is late, but comes before the next renewal. Meanwhile the goroutine that it was for has left,
// the name is released by force, another process acquires and releases it, and a goroutine begins to wait after that.
// It gets a lock with a higher token, and not the one that was handed off.
func TestWhoCameAfterTheHandoffWasSentDoesNotGetIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, other := keep(t, s), keep(t, server.Store())
		lock := take(t, l, "x")
		s.handOff = func(ctx context.Context, h store.Held, metadata []byte) (int64, bool, error) {
			next, hasWaiter, err := s.Store.HandOff(ctx, h, metadata)
			pass(100 * time.Millisecond)
			return next, hasWaiter, err
		}
		early, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := l.Acquire(early, "x")
			left <- err
		}()
		synctest.Wait()
		released := make(chan error)
		go func() { released <- lock.Release(t.Context()) }()
		synctest.Wait() // the handoff is under way
		leave()
		if err := <-left; err == nil {
			t.Error("a lock was given to who has left")
		}
		if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		between := take(t, other, "x")
		release(t, between)
		pass(time.Millisecond)
		got := take(t, l, "x")
		if got.Token() <= between.Token() {
			t.Errorf("after token %d a lock with token %d was given", between.Token(), got.Token())
		}
		if err := <-released; err != nil {
			t.Error(err)
		}
		release(t, got)
	})
}

// The name a is free, and acquired at once. The name b is taken over late, from a lease that has ended, and meanwhile the
// lease that a was acquired with ends. Then none of the two is held, and both can be acquired again. I39.
func TestOfAllNamesNoneIsHeldIfOneEndsBeforeTheLastIsAcquired(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		gone := &scripted{Store: server.Store()}
		gone.renew = func(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }
		lost := take(t, keep(t, gone), "b")
		pass(2 * time.Second)
		if lost.Context().Err() == nil {
			t.Fatal("the lease goes on")
		}
		var over, taken atomic.Bool // the row of the lease is gone; b was taken over
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if over.Load() {
				return false, 0, nil
			}
			return s.Store.Renew(ctx, id)
		}
		s.over = func(ctx context.Context, req *store.Request, from []byte) (int64, error) {
			if taken.CompareAndSwap(false, true) {
				over.Store(true)
				pass(time.Second)
				over.Store(false)
			}
			return s.Store.Takeover(ctx, req, from)
		}
		leases, err := keep(t, s).TryAcquireAll(t.Context(), []string{"a", "b"})
		if leases != nil || !sqllock.IsRetryable(err) || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("%d leases: %v", len(leases), err)
		}
		if !taken.Load() {
			t.Error("b was not taken over")
		}
		other := keep(t, server.Store())
		pass(2 * time.Second) // what a lost lease holds ends with it
		for _, name := range []string{"a", "b"} {
			release(t, take(t, other, name))
		}
	})
}

// failingOver returns a Locker, which holds a lock, and a function that has the server forget the last 50 ms. The name b has
// had one holder.
func failingOver(t *testing.T) (l *leasetable.Locker, failover func()) {
	t.Helper()
	server := memory.NewServer(memory.Postgres)
	s := &scripted{Store: server.Store()}
	var over atomic.Int64
	s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
		there, changes, err := s.Store.Renew(ctx, id)
		return there, changes + over.Load(), err // something may have happened to the locks, as after each failover
	}
	l = keep(t, s)
	take(t, l, "another")
	release(t, take(t, l, "b"))
	pass(100 * time.Millisecond)
	return l, func() {
		pass(10 * time.Millisecond)
		server.Failover(50 * time.Millisecond)
		over.Add(1)
	}
}

// A failover forgets a lock. Then the same Locker acquires the name again, with the token that the lock had. The first lock
// is lost, and its release does not free the name of the second. I18, I20, I23.
func TestALockThatAFailoverForgotIsLostThoughAnotherHasItsToken(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	limit := leasetable.WithLimit(2)
	for _, test := range []struct {
		name         string
		first, again []sqllock.Option
	}{
		{"whole", nil, nil},
		{"permit", []sqllock.Option{limit}, []sqllock.Option{limit}},
		{"permit and whole", []sqllock.Option{limit}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l, failover := failingOver(t)
				first, err := l.TryAcquire(t.Context(), "b", test.first...)
				if err != nil {
					t.Fatal(err)
				}
				failover()
				again, err := l.Acquire(t.Context(), "b", test.again...)
				if err != nil {
					t.Fatal(err)
				}
				if again.Token() != first.Token() {
					t.Fatalf("the tokens are %d and %d", again.Token(), first.Token())
				}
				pass(2 * time.Second)
				if cause := context.Cause(first.Context()); !errors.Is(cause, sqllock.ErrLost) {
					t.Errorf("the first lock ended with: %v", cause)
				}
				if err := first.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
					t.Errorf("the release of the first lock: %v", err)
				}
				pass(2 * time.Second)
				if err := context.Cause(again.Context()); err != nil {
					t.Errorf("the second lock ended with: %v", err)
				}
				release(t, again)
			})
		})
	}
}
