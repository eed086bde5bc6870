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
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// The name has moved to the longer lease, which another lock keeps alive, and the answer was lost. The lock is released,
// which is not confirmed, and meanwhile the shorter lease ends.
func TestALockWhoseShorterLeaseEndsDuringItsUnconfirmedReleaseIsFreedLater(t *testing.T) {
	t.Parallel()
	for _, jumps := range []bool{false, true} {
		t.Run(map[bool]string{false: "no renewal is answered", true: "the database's clock jumps"}[jumps], func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memory.NewServer(memory.Postgres)
				s := &scripted{Store: server.Store()}
				var cut atomic.Bool // no answer comes
				broken := &dberr.Error{Err: errCut, Transient: true}
				s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
					there, err := s.Store.Move(ctx, name, token, from, to)
					if cut.Load() { // the statement was carried out, and no answer comes
						<-ctx.Done()
						return false, dberr.Classify(ctx.Err())
					}
					return there, err
				}
				s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
					if cut.Load() && !jumps {
						return false, 0, broken
					}
					return s.Store.Renew(ctx, id)
				}
				s.again = func(ctx context.Context, req *store.Request) (store.Result, error) {
					if cut.Load() {
						pass(200 * time.Millisecond)
						return store.Result{}, broken
					}
					return s.Store.Release(ctx, req)
				}
				l, other := keep(t, s, leasetable.WithTTL(3*time.Second)), keep(t, server.Store())
				long := take(t, l, "long")
				if err := long.Extend(t.Context(), time.Minute); err != nil {
					t.Fatal(err)
				}
				lock := take(t, l, "x")
				cut.Store(true)
				extended := make(chan error, 1)
				go func() { extended <- lock.Extend(t.Context(), time.Minute) }()
				pass(100 * time.Millisecond)
				if jumps {
					server.SetClock(5 * time.Second)
				}
				if err := lock.Release(t.Context()); err == nil {
					t.Error("the release was confirmed")
				}
				if err := <-extended; err == nil {
					t.Error("the lock was extended")
				}
				cut.Store(false) // all is well again
				pass(time.Hour)
				if _, err := other.TryAcquire(t.Context(), "x"); err != nil {
					t.Errorf("an hour later: %v", err)
				}
				if cause := context.Cause(long.Context()); cause != nil {
					t.Errorf("the other lock ended: %v", cause)
				}
			})
		})
	}
}

// The name has moved to the longer lease, and the answer was lost. So is that to the first attempt of the release. The longer lease
// is not renewed meanwhile, and another process takes the name over, before the release is repeated. The shorter lease lives.
func TestAReleaseThatIsRepeatedAfterTheEndOfTheLongerLeaseIsNotConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		var longer atomic.Value
		s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
			longer.Store(string(to))
			if there, err := s.Store.Move(ctx, name, token, from, to); !there || err != nil {
				t.Errorf("the name has not moved: %v", err)
			}
			<-ctx.Done()
			return false, dberr.Classify(ctx.Err())
		}
		s.renew = func(ctx context.Context, id []byte) (bool, int64, error) {
			if longer.Load() == string(id) {
				return false, 0, &dberr.Error{Err: errCut, Transient: true}
			}
			return s.Store.Renew(ctx, id)
		}
		taken, repeated := make(chan struct{}), false
		s.again = func(ctx context.Context, req *store.Request) (store.Result, error) {
			if !repeated { // it is not carried out, and no answer comes
				repeated = true
				<-ctx.Done()
				return store.Result{}, dberr.Classify(ctx.Err())
			}
			if longer.Load() == string(req.ID) {
				<-taken
			}
			return s.Store.Release(ctx, req)
		}
		l, other := keep(t, s, leasetable.WithTTL(3*time.Second)), keep(t, server.Store())
		lock := take(t, l, "x")
		extended, released := make(chan error, 1), make(chan error, 1)
		go func() { extended <- lock.Extend(t.Context(), 3*time.Second) }()
		pass(100 * time.Millisecond)
		go func() { released <- lock.Release(t.Context()) }()
		if _, err := other.Acquire(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		close(taken)
		if err := <-released; !errors.Is(err, sqllock.ErrExpired) {
			t.Errorf("the release returned %v", err)
		}
		if err := <-extended; err == nil {
			t.Error("the lock was extended")
		}
	})
}

// The shorter lease, which is not renewed, ends while the name moves to the longer one. The move is confirmed after that, or not. I21.
func TestALockThatEndsWhileItMovesIsNotReleasedAsIfItHadBeenHeld(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for how, late := range map[string]error{"confirmed": nil, "not confirmed": errCut} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
				l := keep(t, s)
				lock := take(t, l, "x")
				s.renew = notRenewed
				s.move = func(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
					there, err := s.Store.Move(ctx, name, token, from, to)
					pass(2 * time.Second)
					return there, errors.Join(err, late)
				}
				s.byLease = func(context.Context, string, []byte, time.Duration) (int64, error) { return 0, errCut }
				if err := lock.Extend(t.Context(), time.Minute); !errors.Is(err, sqllock.ErrExpired) {
					t.Errorf("Extend: %v", err)
				}
				if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrExpired) || errors.Is(err, sqllock.ErrLost) {
					t.Errorf("Release: %v", err)
				}
			})
		})
	}
}

// Its extension is not answered, and over before Close comes to its leases, or after: the order is left to chance.
func TestALockIsToldOfACloseThatInterruptsItsExtension(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for range 30 {
		synctest.Test(t, func(t *testing.T) {
			locked, goOn := make(chan struct{}), make(chan struct{})
			s := &asked{&scripted{Store: memory.NewServer(memory.Postgres).Store()}, func() bool { return false }}
			l := keep(t, s)
			lock, another := take(t, l, "x"), take(t, l, "on another lease")
			if err := another.Extend(t.Context(), time.Hour); err != nil {
				t.Fatal(err)
			}
			s.move = func(ctx context.Context, _ string, _ int64, _, _ []byte) (bool, error) {
				<-ctx.Done()
				return false, errCut
			}
			extended := make(chan error)
			go func() { extended <- lock.Extend(t.Context(), time.Minute) }()
			synctest.Wait() // the move is under way
			s.ask = func() bool {
				s.ask = func() bool { return false }
				close(locked)
				<-goOn
				return false
			}
			released, closed := releaseSoon(t, another), make(chan error)
			<-locked
			go func() { closed <- l.Close() }()
			if err := <-extended; !errors.Is(err, sqllock.ErrClosed) {
				t.Errorf("Extend: %v", err)
			}
			close(goOn)
			if err := errors.Join(<-released, <-closed); err != nil {
				t.Error(err)
			}
			if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrClosed) {
				t.Errorf("the lock ended with %v", cause)
			}
		})
	}
}
