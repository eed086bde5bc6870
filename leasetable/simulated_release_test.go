package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
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
		s.renew = notRenewed
		if err := lock.Release(t.Context()); !errors.Is(err, sqllock.ErrExpired) || errors.Is(err, sqllock.ErrLost) {
			t.Errorf("the release says: %v", err)
		}
	})
}

// The driver does not say whether the first attempt was sent, as lib/pq does when a connection ends. It has freed the name.
func TestAReleaseIsNotRepeatedAsIfItHadNotBeenSent(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		db, l := newLagging(t)
		lock := take(t, l, "x")
		db.delay(releasing, lag{broken: true}, lag{})
		release(t, lock)
		if n := db.count(releasing); n != 2 {
			t.Errorf("the release was sent %d times", n)
		}
		release(t, take(t, l, "x"))
	})
}

// The handoff was carried out, its answer was lost, and the driver has repeated it. I18.
func TestAHandoffThatFindsNothingMayHaveBeenCarriedOut(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.handOff = func(ctx context.Context, h store.Held, n int64, metadata []byte) (int64, bool, error) {
			s.handOff = nil
			_, _, err := s.Store.HandOff(ctx, h, n, metadata)
			return 0, false, err
		}
		l := keep(t, s, leasetable.WithTTL(time.Hour))
		kept, lock := take(t, l, "kept"), take(t, l, "x")
		next := line(t, l, "x", 1)
		release(t, lock)
		got := mustGet(t, next)
		if got.Token() <= lock.Token()+1 {
			t.Errorf("token %d after %d", got.Token(), lock.Token())
		}
		release(t, got, kept)
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

// The answers to a release are lost, or it is refused. During its last attempt the name is released by force, the loss is found,
// and another goroutine of the process acquires the name with the same lease. The release does not free the name under that. I18, I21.
func TestAReleaseWhoseLockIsLostMeanwhileFreesNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	refused := &dberr.Error{Err: errCut, OutcomeKnown: true}
	for _, test := range []struct {
		name              string
		first, last, want error
	}{
		{"no answer", errCut, errCut, nil}, // an attempt may have released it, for all that is known
		{"no answer, then refused", errCut, refused, nil},
		{"refused", refused, refused, sqllock.ErrLost},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server := memory.NewServer(memory.Postgres)
				s := &scripted{Store: server.Store()}
				l, other := keep(t, s), keep(t, server.Store())
				lock := take(t, l, "x")
				var next *leasetable.Lease
				s.release = func(context.Context, *store.Request) (store.Result, error) { return store.Result{}, test.first }
				s.again = func(context.Context, *store.Request) (store.Result, error) {
					if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
						t.Error(err)
					}
					pass(500 * time.Millisecond) // a renewal finds the loss
					next = take(t, l, "x")
					return store.Result{}, test.last
				}
				if err := lock.Release(t.Context()); !errors.Is(err, test.want) {
					t.Errorf("Release: %v; want %v", err, test.want)
				}
				s.release, s.again = nil, nil
				pass(2 * time.Second)
				mustVerify(t, next)
				release(t, next)
			})
		})
	}
}

// No attempt is answered until the deadline, when the lock leaves the wait queue. I21.
func TestAReleaseThatIsNotAnsweredUntilItsLeaseEndsIsNotConfirmed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		lock := take(t, keep(t, s), "x")
		s.renew = notRenewed
		s.release = func(context.Context, *store.Request) (store.Result, error) {
			return store.Result{}, &dberr.Error{Err: errCut, Transient: true}
		}
		s.again = s.release
		if err := lock.Release(t.Context()); !errors.Is(err, errCut) {
			t.Errorf("Release: %v", err)
		}
	})
}

// It was read before the release. The next renewal but one is not waited for.
func TestALockThatIsReleasedByForceDuringAVerificationIsToldAfterIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l, operator := keep(t, s, leasetable.WithTTL(time.Hour)), keep(t, server.Store())
		force := func(name string) {
			if _, err := operator.ForceRelease(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		lock, other := take(t, l, "x"), take(t, l, "other")
		read, goOn := make(chan struct{}), make(chan struct{})
		var once sync.Once
		s.held = func(ctx context.Context, id []byte, names []string) ([]store.State, error) {
			held, err := s.Store.StillHeld(ctx, id, names)
			once.Do(func() { close(read); <-goOn })
			return held, err
		}
		force("other")
		renew := func() {
			if err := lock.Renew(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		renew()
		<-read
		force("x")
		renew()
		close(goOn)
		synctest.Wait()
		for _, lock := range []*leasetable.Lease{lock, other} {
			if cause := context.Cause(lock.Context()); !errors.Is(cause, sqllock.ErrLost) {
				t.Errorf("the holder of %s was told %v", lock.Name(), cause)
			}
		}
	})
}

// One statement verifies many locks: one for each took longer than the TTL. I20.
func TestAForcedReleaseIsToldInTimeAlsoToWhoHoldsManyLocks(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		s.read = func(ctx context.Context, name string) (store.State, error) {
			pass(10 * time.Millisecond)
			return s.Store.Read(ctx, name)
		}
		s.held = func(ctx context.Context, id []byte, names []string) ([]store.State, error) {
			pass(10 * time.Millisecond)
			return s.Store.StillHeld(ctx, id, names)
		}
		const ttl = 15 * time.Second
		l := keep(t, s, leasetable.WithTTL(ttl))
		locks := make([]*leasetable.Lease, 2000)
		for i := range locks {
			locks[i] = take(t, l, fmt.Sprint("name ", i))
		}
		lost := locks[len(locks)/2]
		if _, err := keep(t, server.Store()).ForceRelease(t.Context(), lost.Name()); err != nil {
			t.Fatal(err)
		}
		pass(ttl/3 + time.Second)
		for _, lock := range locks {
			if cause := context.Cause(lock.Context()); (lock == lost) != errors.Is(cause, sqllock.ErrLost) || lock != lost && cause != nil {
				t.Errorf("the holder of %s was told %v", lock.Name(), cause)
			}
		}
	})
}

// The note of its wait would be in the way of a share until the server has removed it.
func TestWhoGivesUpWaitingForTheWholeNameMayTryForAShareAtOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		s.note = func(ctx context.Context, name string, us any) error {
			pass(50 * time.Millisecond)
			return s.Store.NoteExclusiveWaiter(ctx, name, us)
		}
		l := keep(t, s)
		defer release(t, take(t, l, "x", leasetable.WithShared()))
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			_, err := l.Acquire(ctx, "x")
			cancel()
			if !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("Acquire of the whole name: %v", err)
			}
			share, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared())
			if err != nil {
				t.Fatalf("another share: %v", err)
			}
			release(t, share)
		}
	})
}

// The process is stopped between the statement and its answer, say.
func TestATicketIsWorthlessWhenTheAnswerToAdoptCameTooLate(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		ticket, err := take(t, keep(t, server.Store()), "x").Export(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		s := &scripted{Store: server.Store()}
		s.renew = notRenewed
		s.adopt = func(ctx context.Context, from store.Held, id, metadata []byte) (int64, error) {
			token, err := s.Store.Adopt(ctx, from, id, metadata)
			pass(1500 * time.Millisecond) // more than the TTL
			return token, err
		}
		for range 2 {
			if _, err := keep(t, s).Adopt(t.Context(), ticket); !errors.Is(err, sqllock.ErrLost) {
				t.Errorf("Adopt: %v", err)
			}
		}
	})
}

func TestVerifyDoesNotWaitForAnAnswerWhenTheLockHasEnded(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.Postgres).Store()}
		lock := take(t, keep(t, s), "x")
		s.renew = notRenewed
		s.read = func(ctx context.Context, _ string) (store.State, error) {
			<-ctx.Done()
			return store.State{}, context.Cause(ctx)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := lock.Verify(ctx); !errors.Is(err, sqllock.ErrExpired) {
			t.Errorf("Verify: %v", err)
		}
	})
}

// The claim and the goroutine that settles lost answers change the same rows, so the database may undo one of them.
func TestAPermitIsTakenThoughADeadlockMeetsWhatALostAnswerLeft(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		s := &scripted{Store: memory.NewServer(memory.MariaDB).Store()}
		l := keep(t, s)
		defer release(t, take(t, l, "x", leasetable.WithShared()))
		s.permit = func(context.Context, string, store.State, []byte, int) (int64, error) {
			s.permit = nil
			pass(100 * time.Millisecond)
			return 0, errCut // the statement may still come
		}
		var undone atomic.Int64
		s.bump = func(ctx context.Context, name string, was store.State) error {
			if undone.Add(1) <= 2 {
				return &dberr.Error{Err: errors.New("deadlock"), OutcomeKnown: true, Transient: true}
			}
			return s.Store.BumpToken(ctx, name, was)
		}
		first := make(chan error)
		go func() {
			_, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared())
			first <- err
		}()
		pass(10 * time.Millisecond)
		lock, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared()) // with the same lease
		if err != nil {
			t.Error(err)
		} else {
			release(t, lock)
		}
		if err := <-first; err == nil {
			t.Error("the answer was not lost")
		}
	})
}

// The function returns the cause of its context, too.
func TestWhatCloseHasEndedSaysSoOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		l := keep(t, memory.NewServer(memory.Postgres).Store())
		lock := take(t, l, "x")
		err := sqllock.Do(t.Context(), l, "y", func(ctx context.Context) error {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		for what, err := range map[string]error{"Do": err, "Release": lock.Release(t.Context())} {
			if !errors.Is(err, sqllock.ErrClosed) || strings.Count(err.Error(), sqllock.ErrClosed.Error()) != 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
