package pg_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func tryShare(t *testing.T, l sqllock.Locker) sqllock.Lock {
	t.Helper()
	lock, err := l.TryAcquire(t.Context(), "it", pg.WithShared())
	if err != nil {
		t.Fatalf("a share: %v", err)
	}
	return lock
}

func mustNotShare(t *testing.T, l sqllock.Locker) {
	t.Helper()
	if _, err := l.TryAcquire(t.Context(), "it", pg.WithShared()); !errors.Is(err, sqllock.ErrHeld) {
		t.Fatalf("a share: %v; want ErrHeld", err)
	}
}

// waitForShare acquires a share in another goroutine.
func waitForShare(ctx context.Context, l sqllock.Locker) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		lock, err := l.Acquire(ctx, "it", pg.WithShared())
		out <- outcome{lock, err}
	}()
	return out
}

func TestManyShareALockAndNobodyHasItMeanwhile(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	a, b := newLocker(t, db), newLocker(t, db)
	shares := []sqllock.Lock{tryShare(t, a), tryShare(t, a), tryShare(t, b)}
	if n := locksOn(t, db); n != 2 {
		t.Errorf("two Lockers have %d locks on the server", n)
	}
	for _, share := range shares {
		mustBeHeld(t, a, "it")
		mustBeHeld(t, b, "it")
		mustLive(t, share)
		mustRelease(t, share)
	}
	whole := mustTry(t, a, "it")
	mustNotShare(t, a)
	mustNotShare(t, b)
	mustRelease(t, whole)
	mustRelease(t, tryShare(t, a))
	if n := locksOn(t, db); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

func TestSharesAreWaitedFor(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	a, b := newLocker(t, db), newLocker(t, db)
	ctx, cancel := bounded(t)
	defer cancel()
	whole := mustTry(t, a, "it")
	waits := []<-chan outcome{waitForShare(ctx, a), waitForShare(ctx, b), waitForShare(ctx, b)}
	eventually(t, "one process waits", func() bool { return waitersFor(t, db, "it") == 1 })
	mustRelease(t, whole)
	for _, wait := range waits { // together: none releases before the last has its share
		out := <-wait
		if out.err != nil {
			t.Fatal(out.err)
		}
		defer mustRelease(t, out.lock)
	}
}

func TestAShareThatIsNoLongerWaitedForIsNotTaken(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	a, b := newLocker(t, db), newLocker(t, db)
	whole := mustTry(t, a, "it")
	ctx, cancel := context.WithCancel(t.Context())
	waits := []<-chan outcome{waitForShare(ctx, b), waitForShare(ctx, b), waitForShare(ctx, a)}
	eventually(t, "the other process waits", func() bool { return waitersFor(t, db, "it") == 1 })
	cancel()
	for _, wait := range waits {
		if out := <-wait; !errors.Is(out.err, context.Canceled) {
			t.Errorf("a wait that was cancelled: %v", out.err)
		}
	}
	mustRelease(t, whole)
	mustRelease(t, mustAcquire(t, a, "it"))
	mustRelease(t, mustAcquire(t, b, "it"))
}

// The server grants more shares to a session that has one, even if there are other waiters. I48.
func TestSharesThatKeepComingDoNotStarveAnybody(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, who := range []string{"the same process", "another process"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			a := newLocker(t, db)
			writer := a
			if who == "another process" {
				writer = newLocker(t, db)
			}
			ctx, cancel := bounded(t)
			defer cancel()
			var readers sync.WaitGroup
			stop := make(chan struct{})
			for range 64 {
				readers.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						share, err := a.Acquire(ctx, "it", pg.WithShared())
						if err != nil {
							t.Error(err)
							return
						}
						ask[int](t, db, "SELECT 1") // meanwhile others arrive
						if err := share.Release(ctx); err != nil {
							t.Error(err)
						}
					}
				})
			}
			lock, err := writer.Acquire(ctx, "it")
			close(stop)
			if err != nil {
				t.Fatal(err)
			}
			mustRelease(t, lock)
			readers.Wait()
		})
	}
}

// I48.
func TestEverybodyWhoSharesIsToldOfTheLoss(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	shares := []sqllock.Lock{tryShare(t, l), tryShare(t, l), tryShare(t, l)}
	mustRelease(t, shares[0])
	terminate(t, db, "it")
	for _, share := range shares[1:] {
		mustBeLost(t, share)
	}
	mustRelease(t, tryShare(t, l))
}

func TestSharersDoNotExcludeEachOther(t *testing.T) {
	t.Parallel()
	l := newLocker(t, sqltest.Postgres(t))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 300 {
				share, err := l.TryAcquire(t.Context(), "it", pg.WithShared())
				if err != nil { // even while the last of the others releases its share
					t.Error(err)
					return
				}
				if err := share.Release(t.Context()); err != nil { // even at the same moment as others
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestAShareHasTheValuesOfItsOwnCaller(t *testing.T) {
	t.Parallel()
	type user struct{}
	l := newLocker(t, sqltest.Postgres(t))
	for _, name := range []string{"alice", "bob"} {
		share, err := l.TryAcquire(context.WithValue(t.Context(), user{}, name), "it", pg.WithShared())
		if err != nil {
			t.Fatal(err)
		}
		defer mustRelease(t, share)
		if got := share.Context().Value(user{}); got != name {
			t.Errorf("%s's lock has %v's context", name, got)
		}
	}
	if got := tryShare(t, l).Context().Value(user{}); got != nil {
		t.Errorf("nobody's lock has %v's context", got)
	}
}

func TestAShareMayBeJoinedAgainWhenTheWriterHasGivenUp(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"the same process", "another process"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			a := newLocker(t, db)
			writer := a
			if who == "another process" {
				writer = newLocker(t, db)
			}
			defer mustRelease(t, tryShare(t, a))
			ctx, cancel := context.WithCancel(t.Context())
			gaveUp := make(chan error, 1)
			go func() {
				_, err := writer.Acquire(ctx, "it")
				gaveUp <- err
			}()
			eventually(t, "the writer keeps readers out", func() bool {
				share, err := a.TryAcquire(t.Context(), "it", pg.WithShared())
				if err == nil {
					mustRelease(t, share)
				}
				return err != nil
			})
			bound, end := bounded(t)
			defer end()
			reader := waitForShare(bound, a)
			cancel()
			if err := <-gaveUp; !errors.Is(err, context.Canceled) {
				t.Errorf("the writer: %v", err)
			}
			if out := <-reader; out.err != nil {
				t.Error(out.err)
			} else {
				defer mustRelease(t, out.lock)
			}
			eventually(t, "a share is to be had", func() bool {
				share, err := a.TryAcquire(t.Context(), "it", pg.WithShared())
				if err == nil {
					defer mustRelease(t, share)
				}
				return err == nil
			})
		})
	}
}

// Between two slices of its wait a writer is in no queue of the server, but has the gate of the lock. I48.
func TestAWriterWithTheGateCountsAsAWaiter(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	share := tryShare(t, l)
	writer, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	take := func(key string) {
		t.Helper()
		if _, err := writer.ExecContext(t.Context(), "SELECT pg_advisory_lock("+key+")", pg.Key("it")); err != nil {
			t.Fatal(err)
		}
	}
	mustShow := func(waiters int) {
		t.Helper()
		if info, err := l.Inspect(t.Context(), "it"); err != nil || info.Holder.Waiters != waiters {
			t.Errorf("Inspect = %+v, %v; want %d waiters", info, err, waiters)
		}
	}
	take("hashtextextended($1::bigint::text, 1)")
	mustShow(1)
	eventually(t, "the writer keeps readers out", func() bool {
		joined, err := l.TryAcquire(t.Context(), "it", pg.WithShared())
		if err == nil {
			mustRelease(t, joined)
		}
		return errors.Is(err, sqllock.ErrHeld)
	})
	mustRelease(t, share)
	take("$1")
	mustShow(0) // a holder does not wait
	var held *sqllock.HeldError
	if _, err := l.TryAcquire(t.Context(), "it"); !errors.As(err, &held) || held.Holder.Session == 0 || held.Holder.Waiters != 0 {
		t.Errorf("TryAcquire: %v, %+v", err, held)
	}
}

// longHold is longer than a waiter stays in the server's queue at a time.
const longHold = 1500 * time.Millisecond

// I47.
func TestReadersWhoHoldForLongDoNotStarveAWriter(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	ctx, cancel := bounded(t)
	defer cancel()
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		l := newLocker(t, db)
		mustRelease(t, tryShare(t, l))
		readers.Go(func() {
			for {
				share, err := l.Acquire(ctx, "it", pg.WithShared())
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-time.After(longHold):
				case <-stop:
				}
				if err := share.Release(ctx); err != nil {
					t.Error(err)
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	eventually(t, "all readers have a share", func() bool { return locksOn(t, db) == 3 })
	lock, err := newLocker(t, db).Acquire(ctx, "it")
	close(stop)
	if err != nil {
		t.Fatal(err)
	}
	mustRelease(t, lock)
	readers.Wait()
}

// I48.
func TestReadersAndWritersAtRandom(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	var readers, writers atomic.Int32
	check := func(what string) {
		if r, w := readers.Load(), writers.Load(); w > 1 || w == 1 && r > 0 {
			t.Errorf("%s: %d readers and %d writers at the same time", what, r, w)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*soon)
	defer cancel()
	var all sync.WaitGroup
	for range 3 {
		l := newLocker(t, db)
		for range 6 {
			all.Go(func() {
				for range 60 {
					among, opts := &writers, []sqllock.Option(nil)
					if rand.IntN(3) > 0 {
						among, opts = &readers, []sqllock.Option{pg.WithShared()}
					}
					acquire := l.Acquire
					if rand.IntN(3) == 0 {
						acquire = l.TryAcquire
					}
					lock, err := acquire(ctx, "it", opts...)
					if errors.Is(err, sqllock.ErrHeld) && ctx.Err() == nil {
						continue
					}
					if err != nil {
						t.Error(err)
						return
					}
					among.Add(1)
					check("after an acquisition")
					among.Add(-1)
					if err := lock.Release(ctx); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if n := locksOn(t, db); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}
