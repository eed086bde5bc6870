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
	open    func(ctx context.Context, l store.LeaseRow, within time.Duration) (time.Time, error)
	free    func(ctx context.Context, req *store.Request) (store.Result, error)
	release func(ctx context.Context, req *store.Request) (store.Result, error)
	again   func(ctx context.Context, req *store.Request) (store.Result, error)
	byLease func(ctx context.Context, name string, id []byte, minHold time.Duration) (int64, error)
	renew   func(ctx context.Context, id []byte) (bool, int64, error)
	read    func(ctx context.Context, name string) (store.State, error)
	held    func(ctx context.Context, id []byte, names []string) ([]store.State, error)
	handOff func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error)
	over    func(ctx context.Context, req *store.Request, from []byte) (int64, error)
	turn    func(ctx context.Context) (store.Turn, error)
	note    func(ctx context.Context, name string, us any) error
	adopt   func(ctx context.Context, from store.Held, id, metadata []byte) (int64, error)
	permits func(ctx context.Context, name string) (store.State, error)
	permit  func(ctx context.Context, name string, was store.State, id []byte, limit int) (int64, error)
	bump    func(ctx context.Context, name string, was store.State) error
	move    func(ctx context.Context, name string, token int64, from, to []byte) (bool, error)
	end     func(ctx context.Context, id []byte) (bool, error)
	expire  func(ctx context.Context, id []byte, renewals int64) (bool, error)

	maxTurns int
}

func (s *scripted) MaxTurns() int {
	if s.maxTurns != 0 {
		return s.maxTurns
	}
	return s.Store.MaxTurns()
}

func (s *scripted) OpenLease(ctx context.Context, l store.LeaseRow, within time.Duration) (time.Time, error) {
	if s.open != nil {
		return s.open(ctx, l, within)
	}
	return s.Store.OpenLease(ctx, l, within)
}

func (s *scripted) AcquireFree(ctx context.Context, req *store.Request) (store.Result, error) {
	if s.free != nil {
		return s.free(ctx, req)
	}
	return s.Store.AcquireFree(ctx, req)
}

func (s *scripted) Release(ctx context.Context, req *store.Request) (store.Result, error) {
	switch {
	case req.Patient && s.again != nil:
		return s.again(ctx, req)
	case !req.Patient && s.release != nil:
		return s.release(ctx, req)
	}
	return s.Store.Release(ctx, req)
}

func (s *scripted) ReleaseByLease(ctx context.Context, name string, id []byte, minHold time.Duration) (int64, error) {
	if s.byLease != nil {
		return s.byLease(ctx, name, id, minHold)
	}
	return s.Store.ReleaseByLease(ctx, name, id, minHold)
}

func (s *scripted) Read(ctx context.Context, name string) (store.State, error) {
	if s.read != nil {
		return s.read(ctx, name)
	}
	return s.Store.Read(ctx, name)
}

func (s *scripted) Renew(ctx context.Context, id []byte) (bool, int64, error) {
	if s.renew != nil {
		return s.renew(ctx, id)
	}
	return s.Store.Renew(ctx, id)
}

func (s *scripted) StillHeld(ctx context.Context, id []byte, names []string) ([]store.State, error) {
	if s.held != nil {
		return s.held(ctx, id, names)
	}
	return s.Store.StillHeld(ctx, id, names)
}

func (s *scripted) HandOff(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
	if s.handOff != nil {
		return s.handOff(ctx, h, n, metadata)
	}
	return s.Store.HandOff(ctx, h, n, metadata)
}

func (s *scripted) Takeover(ctx context.Context, req *store.Request, from []byte) (int64, error) {
	if s.over != nil {
		return s.over(ctx, req, from)
	}
	return s.Store.Takeover(ctx, req, from)
}

func (s *scripted) OpenTurn(ctx context.Context) (store.Turn, error) {
	if s.turn != nil {
		return s.turn(ctx)
	}
	return s.Store.OpenTurn(ctx)
}

func (s *scripted) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	if s.note != nil {
		return s.note(ctx, name, us)
	}
	return s.Store.NoteExclusiveWaiter(ctx, name, us)
}

func (s *scripted) Adopt(ctx context.Context, from store.Held, id, metadata []byte) (int64, error) {
	if s.adopt != nil {
		return s.adopt(ctx, from, id, metadata)
	}
	return s.Store.Adopt(ctx, from, id, metadata)
}

func (s *scripted) ReadPermits(ctx context.Context, name string) (store.State, error) {
	if s.permits != nil {
		return s.permits(ctx, name)
	}
	return s.Store.ReadPermits(ctx, name)
}

func (s *scripted) AcquirePermit(ctx context.Context, name string, was store.State, id []byte, limit int) (int64, error) {
	if s.permit != nil {
		return s.permit(ctx, name, was, id, limit)
	}
	return s.Store.AcquirePermit(ctx, name, was, id, limit)
}

func (s *scripted) BumpToken(ctx context.Context, name string, was store.State) error {
	if s.bump != nil {
		return s.bump(ctx, name, was)
	}
	return s.Store.BumpToken(ctx, name, was)
}

func (s *scripted) Move(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
	if s.move != nil {
		return s.move(ctx, name, token, from, to)
	}
	return s.Store.Move(ctx, name, token, from, to)
}

func (s *scripted) Expire(ctx context.Context, id []byte) (bool, error) {
	if s.end != nil {
		return s.end(ctx, id)
	}
	return s.Store.Expire(ctx, id)
}

func (s *scripted) ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (bool, error) {
	if s.expire != nil {
		return s.expire(ctx, id, renewals)
	}
	return s.Store.ExpireUnchanged(ctx, id, renewals)
}

// notRenewed is a renewal whose answer is lost.
func notRenewed(context.Context, []byte) (bool, int64, error) { return false, 0, errCut }

// keep opens a Locker in memory.
func keep(t *testing.T, s store.Store, opts ...leasetable.Option) *leasetable.Locker {
	t.Helper()
	l, err := leasetable.Keep(s, append([]leasetable.Option{leasetable.WithTTL(time.Second)}, opts...)...)
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

// lateHandoff returns a Locker that holds x, whose handoffs are answered late, and another Locker.
func lateHandoff(t *testing.T, by time.Duration) (lock *leasetable.Lease, l, other *leasetable.Locker) {
	t.Helper()
	server := memory.NewServer(memory.Postgres)
	s := &scripted{Store: server.Store()}
	l, other = keep(t, s), keep(t, server.Store())
	lock = take(t, l, "x")
	s.handOff = func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
		next, hasWaiter, err := s.Store.HandOff(ctx, h, n, metadata)
		pass(by)
		return next, hasWaiter, err
	}
	return lock, l, other
}

// releaseSoon releases a lock in another goroutine.
func releaseSoon(t *testing.T, lock *leasetable.Lease) <-chan error {
	t.Helper()
	released := make(chan error)
	go func() { released <- lock.Release(t.Context()) }()
	return released
}

// waitingForX makes a goroutine wait for x. It gets nothing: leave ends its wait.
func waitingForX(t *testing.T, l *leasetable.Locker) (leave func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		_, err := l.Acquire(ctx, "x")
		left <- err
	}()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-left; err == nil {
			t.Error("a lock was given to who has left")
		}
	}
}

// holdByForce has a Locker release x by force, acquire and release it. It returns the token that x had.
func holdByForce(t *testing.T, l *leasetable.Locker) int64 {
	t.Helper()
	if _, err := l.ForceRelease(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	between := take(t, l, "x")
	release(t, between)
	return between.Token()
}

// The answer to a handoff is late. Meanwhile the name is released by force, and another process acquires and releases it.
// The next goroutine then gets a lock with a higher token than that, and not the one that was handed off.
func TestALockThatWasFreedByForceDuringItsHandoffIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		lock, l, other := lateHandoff(t, time.Second) // renewals go on
		next := make(chan *leasetable.Lease)
		go func() { next <- take(t, l, "x") }()
		synctest.Wait()
		released := releaseSoon(t, lock)
		pass(10 * time.Millisecond)
		between := holdByForce(t, other)
		if err := <-released; err != nil {
			t.Error(err)
		}
		got := <-next
		if got.Token() <= between {
			t.Errorf("after token %d a lock with token %d was given", between, got.Token())
		}
		release(t, got)
	})
}

// The answer to a handoff is late, but comes before the next renewal. Meanwhile the goroutine that it was for has left,
// the name is released by force, another process acquires and releases it, and a goroutine begins to wait after that.
// It gets a lock with a higher token, and not the one that was handed off. I12, I24.
func TestWhoCameAfterTheHandoffWasSentDoesNotGetIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		lock, l, other := lateHandoff(t, 100*time.Millisecond)
		leave := waitingForX(t, l)
		released := releaseSoon(t, lock)
		synctest.Wait() // the handoff is under way
		leave()
		between := holdByForce(t, other)
		pass(time.Millisecond)
		got := take(t, l, "x")
		if got.Token() <= between {
			t.Errorf("after token %d a lock with token %d was given", between, got.Token())
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
