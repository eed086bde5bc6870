package leasetable_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// acquire waits for "x" in the background.
func acquire(ctx context.Context, t *testing.T, l *leasetable.Locker, opts ...sqllock.Option) <-chan *leasetable.Lease {
	t.Helper()
	got := make(chan *leasetable.Lease, 1)
	go func() {
		lock, err := l.Acquire(ctx, "x", opts...)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			got <- nil
			return
		}
		got <- lock
	}()
	return got
}

func isWanted(t *testing.T, db *sqltest.Database) bool {
	t.Helper()
	return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE exclusive_waiter_until IS NOT NULL") == 1
}

func TestThoseInLineBehindOneWhoIsAloneShareTheNameAfterIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		alone := take(t, l, "x")
		var waiting []<-chan *leasetable.Lease
		for n := range 5 {
			waiting = append(waiting, acquire(t.Context(), t, l, leasetable.WithShared()))
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == n+1 })
		}
		waiting = append(waiting, acquire(t.Context(), t, other, leasetable.WithShared()))
		release(t, alone)
		var all []*leasetable.Lease
		for _, w := range waiting { // all of them at the same time
			lease := <-w
			if lease == nil {
				return
			}
			all = append(all, lease)
		}
		release(t, all...)
		release(t, take(t, l, "x"))
	})
}

func TestAPermitThatComesFreeIsTakenByWhoWaits(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		two := leasetable.WithLimit(2)
		held := []*leasetable.Lease{take(t, a, "x", two), take(t, a, "x", two)}
		var waiting []<-chan *leasetable.Lease
		for range 3 {
			waiting = append(waiting, acquire(t.Context(), t, a, two), acquire(t.Context(), t, b, two))
		}
		tokens := make(map[int64]bool)
		got := make(chan *leasetable.Lease)
		for _, w := range waiting {
			go func() { got <- <-w }()
		}
		for range waiting {
			release(t, held[0])
			next := mustGet(t, got)
			if tokens[next.Token()] {
				t.Fatalf("the next is %v", next)
			}
			tokens[next.Token()] = true
			held = append(held[1:], next)
		}
		release(t, held...)
	})
}

// Shared holders come and go in two processes, so that there is always one of them.
func TestOneWhoWaitsToBeAloneIsNotStarved(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var busy sync.WaitGroup
		var inside, shares atomic.Int64
		for range 2 {
			l := newLocker(t, db.DB)
			for range 6 {
				busy.Go(func() {
					for ctx.Err() == nil {
						err := sqllock.Do(ctx, l, "x", func(ctx context.Context) error {
							inside.Add(1)
							defer inside.Add(-1)
							shares.Add(1)
							timer := time.NewTimer(200 * time.Millisecond)
							defer timer.Stop()
							select {
							case <-timer.C:
							case <-ctx.Done():
							}
							return nil
						}, leasetable.WithShared())
						if err != nil && ctx.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
			}
		}
		writer := newLocker(t, db.DB)
		for range 3 {
			before := shares.Load()
			eventually(t, func() bool { return shares.Load() > before+3 })
			next := acquire(bounded(t), t, writer)
			eventually(t, func() bool { return isWanted(t, db) || len(next) > 0 })
			before = shares.Load()
			alone := receive(t, next)
			if alone == nil {
				t.Fatal("the writer failed")
			}
			if n := inside.Load(); n != 0 {
				t.Errorf("%d share what one holds alone", n)
			}
			if n := shares.Load() - before; n > 200 {
				t.Errorf("%d came first, after it was known that somebody waits to be alone", n)
			}
			release(t, alone)
		}
		cancel()
		busy.Wait()
	})
}

func TestWhoGivesUpWaitingLeavesNothing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		shared := take(t, a, "x", leasetable.WithShared())
		ctx, cancel := context.WithCancel(t.Context())
		writer := acquire(ctx, t, b)
		eventually(t, func() bool { return isWanted(t, db) })
		eventually(t, func() bool { // a wait that is noted for some seconds is over on a machine that stops
			share, err := tryPermit(t, a, leasetable.WithShared())
			if err == nil {
				release(t, share)
			}
			return errors.Is(err, sqllock.ErrHeld)
		})
		cancel()
		<-writer
		eventually(t, func() bool { return !isWanted(t, db) })
		again := locktest.MustTry(t, a, "x", leasetable.WithShared())
		release(t, shared, again)

		for range 30 { // a permit that becomes free just when its waiter leaves
			one := take(t, a, "x", leasetable.WithLimit(1))
			ctx, cancel := context.WithCancel(t.Context())
			waiters := []<-chan *leasetable.Lease{
				acquire(ctx, t, a, leasetable.WithLimit(1)), acquire(ctx, t, b, leasetable.WithLimit(1)), acquire(ctx, t, b),
			}
			go cancel()
			release(t, one)
			for _, w := range waiters {
				if lease := <-w; lease != nil {
					release(t, lease)
				}
			}
		}
		eventually(t, func() bool { return count(t, db, "SELECT count(*) FROM sqllock_permit") == 0 })
		release(t, take(t, b, "x"))
	})
}

// Nothing withdraws the exclusive wait of a killed waiter. I35.
func TestAWaiterThatDiedKeepsOthersOutForSomeSecondsOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		take(t, l, "x", leasetable.WithShared())
		began := time.Now()
		run(t, db, "UPDATE sqllock_lock SET exclusive_waiter_until = "+soonOver[db.Engine])
		take(t, l, "x", leasetable.WithShared())
		if waited := time.Since(began); waited < 990*time.Millisecond {
			t.Errorf("a share was to be had after %v", waited)
		}
	})
}

func TestWhoIsKeptOutByAWaiterAloneIsToldOfNoHolder(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		release(t, take(t, l, "x", leasetable.WithShared()))
		run(t, db, "UPDATE sqllock_lock SET exclusive_waiter_until = "+soonOver[db.Engine])
		_, err := l.TryAcquire(t.Context(), "x", leasetable.WithShared())
		var held *sqllock.HeldError
		if err != nil && (!errors.As(err, &held) || held.Holder != sqllock.Holder{}) { // nil: the second is over
			t.Errorf("TryAcquire = %v", err)
		}
	})
}

var soonOver = map[sqltest.Engine]string{
	sqltest.EnginePostgres: "now() + interval '1 second'", sqltest.EngineSQLite: "CAST(unixepoch('subsec') * 1000000 AS INTEGER) + 1000000",
	sqltest.EngineMySQL: "UTC_TIMESTAMP(6) + INTERVAL 1 SECOND", sqltest.EngineMariaDB: "UTC_TIMESTAMP(6) + INTERVAL 1 SECOND",
}

func TestAWaitForAPermitGivesUpEarly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		one := take(t, l, "x", leasetable.WithLimit(1))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		for _, opts := range [][]sqllock.Option{{leasetable.WithLimit(1)}, nil} {
			_, err := newLocker(t, db.DB).Acquire(ctx, "x", append(opts, leasetable.WithGiveUpEarly())...)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder.Token != one.Token() {
				t.Errorf("Acquire: %v", err)
			}
		}
	})
}

func TestGivingUpEarlyLooksAtThoseInTheWayOnly(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		for name, ttls := range map[string][]time.Duration{"a": {time.Hour, time.Minute}, "b": {time.Minute, time.Hour}} {
			for _, ttl := range ttls {
				take(t, newLocker(t, db.DB, leasetable.WithTTL(ttl)), name, leasetable.WithLimit(2))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			l := newLocker(t, db.DB)
			alone := make(chan error, 1)
			go func() {
				_, err := l.Acquire(ctx, name, leasetable.WithGiveUpEarly()) // takes both permits
				alone <- err
			}()
			if err := <-alone; !errors.Is(err, sqllock.ErrHeld) || errors.Is(err, context.Canceled) {
				t.Errorf("%s, alone: %v", name, err)
			}
			waits := make(chan error, 1)
			go func() {
				_, err := l.Acquire(ctx, name, leasetable.WithGiveUpEarly(), leasetable.WithLimit(2)) // takes one permit
				waits <- err
			}()
			eventually(t, func() bool { return leasetable.Waits(l, name) })
			cancel()
			if err := <-waits; !errors.Is(err, context.Canceled) {
				t.Errorf("%s, with a permit: %v", name, err)
			}
		}
	})
}

// The test counts what the database does not report itself. I29.
func TestNeverDoMoreHoldANameThanMay(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const lockers, goroutines, rounds, limit = 3, 5, 12, 3
		var sharing, alone atomic.Int64
		var mu sync.Mutex
		tokens := make(map[int64]bool)
		hold := func(n *atomic.Int64, most int64, other *atomic.Int64) func(lease *leasetable.Lease) {
			return func(lease *leasetable.Lease) {
				if n.Add(1) > most || other.Load() > 0 {
					t.Errorf("%d share the name, %d hold it alone", sharing.Load(), alone.Load())
				}
				mu.Lock()
				if tokens[lease.Token()] {
					t.Errorf("token %d twice", lease.Token())
				}
				tokens[lease.Token()] = true
				mu.Unlock()
				for range 3 { // takes some time
					if err := insist(t.Context(), func() error { return lease.Verify(t.Context()) }); err != nil {
						t.Error(err)
					}
				}
				if n.Load() > most || other.Load() > 0 {
					t.Errorf("%d share the name, %d hold it alone", sharing.Load(), alone.Load())
				}
				n.Add(-1)
			}
		}
		var done sync.WaitGroup
		for range lockers {
			l := newLocker(t, db.DB)
			for g := range goroutines {
				done.Go(func() {
					f, opts := hold(&sharing, limit, &alone), []sqllock.Option{leasetable.WithLimit(limit)}
					if g == 0 {
						f, opts = hold(&alone, 1, &sharing), nil
					}
					for range rounds {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						lock, err := l.Acquire(ctx, "x", opts...)
						cancel()
						if err != nil {
							t.Error(err)
							return
						}
						f(lock)
						if err := lock.Release(t.Context()); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		done.Wait()
		if n := lockers * goroutines * rounds; len(tokens) != n {
			t.Errorf("%d tokens for %d holds", len(tokens), n)
		}
	})
}

func TestOneWhoWasAloneKeepsNobodyOutAfterwards(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		shared := take(t, l, "x", leasetable.WithShared())
		alone := acquire(t.Context(), t, newLocker(t, db.DB), sqllock.WithTTL(time.Hour))
		eventually(t, func() bool { return isWanted(t, db) })
		release(t, shared)
		lease := <-alone
		if lease == nil {
			return
		}
		if isWanted(t, db) {
			t.Error("who has the name alone is noted to wait for it")
		}
		release(t, lease)
	})
}
