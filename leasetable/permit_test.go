package leasetable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// tryPermit tries to acquire a permit until the database answers.
func tryPermit(t *testing.T, l *leasetable.Locker, opts ...sqllock.Option) (*leasetable.Lease, error) {
	t.Helper()
	return locktest.TryAnswered(bounded(t), l, "x", opts...)
}

func release(t *testing.T, leases ...*leasetable.Lease) {
	t.Helper()
	for _, lease := range leases {
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// mustRise checks that the tokens of successive acquisitions rise.
func mustRise(t *testing.T, leases ...*leasetable.Lease) {
	t.Helper()
	var last int64
	for _, lease := range leases {
		if lease.Token() <= last {
			t.Errorf("token %d came after %d", lease.Token(), last)
		}
		last = lease.Token()
	}
}

func TestSoManyHoldANameWithALimitAndNoMore(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		three := leasetable.WithLimit(3)
		first, second, third := take(t, a, "x", three), take(t, b, "x", three), take(t, a, "x", three)
		for _, l := range []*leasetable.Locker{a, b} {
			_, err := tryPermit(t, l, three)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder.Token != first.Token() || held.Holder.Owner == "" {
				t.Errorf("the fourth: %v; want that the first holds it", err)
			}
		}
		release(t, second)
		fourth := locktest.MustTry(t, b, "x", three)
		if _, err := tryPermit(t, a, three); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("the fifth: %v", err)
		}
		mustRise(t, first, second, third, fourth)
		for _, lease := range []*leasetable.Lease{first, third, fourth} {
			mustVerify(t, lease)
			mustRenew(t, lease)
			if left := lease.Remaining(); left <= 0 {
				t.Errorf("one of three: %v left", left)
			}
		}
		release(t, first, third, fourth)
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 0 {
			t.Errorf("%d permits are left", n)
		}
		if err := first.Verify(t.Context()); !errors.Is(err, sqllock.ErrReleased) {
			t.Errorf("Verify after Release: %v", err)
		}
	})
}

// I30.
func TestThoseWhoShareAndOneWhoIsAloneExcludeEachOther(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		shared := leasetable.WithShared()
		one, two, three := take(t, a, "x", shared), take(t, a, "x", shared), take(t, b, "x", shared)
		release(t, one)
		for _, l := range []*leasetable.Locker{a, b} {
			if h := mustBeHeld(t, l, "x"); h.Token != two.Token() {
				t.Errorf("the name is held by %v", h)
			}
		}
		release(t, two, three)
		alone := take(t, b, "x")
		for _, l := range []*leasetable.Locker{a, b} {
			_, err := tryPermit(t, l, shared)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder.Token != alone.Token() {
				t.Errorf("a share of what one holds alone: %v", err)
			}
		}
		release(t, alone)
		again := take(t, a, "x", shared)
		release(t, again)
		last := take(t, a, "x")
		mustRise(t, one, two, three, alone, again, last)
		release(t, last, take(t, a, "y", shared)) // a new name
	})
}

// I30.
func TestAShareOfASemaphoreIsRefusedAndAPermitAmongShares(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		refused := func(l *leasetable.Locker, asked, held int, token int64, opt sqllock.Option) {
			t.Helper()
			_, errTry := tryPermit(t, l, opt)
			_, errWait := l.Acquire(t.Context(), "x", opt)
			for _, err := range []error{errTry, errWait} {
				var sharing *leasetable.SharingError
				if !errors.As(err, &sharing) || sharing.Asked != asked || sharing.Held != held || sharing.Holder.Token != token {
					t.Errorf("%v; want %d and %d, held by %d", err, asked, held, token)
				}
				if errors.Is(err, sqllock.ErrHeld) || errors.Is(err, sqllock.ErrLimit) || sqllock.IsRetryable(err) {
					t.Errorf("%v looks as if it passed by itself, or as if a connection were lacking", err)
				}
			}
		}
		three, two := take(t, a, "x", leasetable.WithLimit(3)), take(t, a, "x", leasetable.WithLimit(2))
		refused(a, 0, 2, three.Token(), leasetable.WithShared())
		refused(b, 0, 2, three.Token(), leasetable.WithShared())
		_, err := tryPermit(t, b, leasetable.WithShared())
		if err == nil || !strings.Contains(err.Error(), "without a limit") || !strings.Contains(err.Error(), "limit of 2") {
			t.Errorf("%v does not say both", err)
		}
		release(t, two, three)
		shared := take(t, b, "x", leasetable.WithShared())
		refused(a, 2, 0, shared.Token(), leasetable.WithLimit(2))

		// The same while another goroutine of the process waits in front.
		ctx, cancel := context.WithCancel(t.Context())
		waiting := make(chan error, 1)
		go func() {
			_, err := a.Acquire(ctx, "x")
			waiting <- err
		}()
		eventually(t, func() bool {
			return count(t, db, "SELECT count(*) FROM sqllock_lock WHERE exclusive_waiter_until IS NOT NULL") == 1
		})
		refused(a, 2, 0, shared.Token(), leasetable.WithLimit(2))
		cancel()
		if err := <-waiting; !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// I29.
func TestOfDifferentLimitsTheSmallestCounts(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB), newLocker(t, db.DB)
		refused := func(limits ...int) {
			t.Helper()
			for _, l := range []*leasetable.Locker{a, b} {
				for _, n := range limits {
					if _, err := tryPermit(t, l, leasetable.WithLimit(n)); !errors.Is(err, sqllock.ErrHeld) {
						t.Errorf("with a limit of %d: %v; want ErrHeld", n, err)
					}
				}
			}
		}
		with := func(l *leasetable.Locker, n int) *leasetable.Lease {
			t.Helper()
			return locktest.MustTry(t, l, "x", leasetable.WithLimit(n))
		}
		mustShow := func(limit, holders int) {
			t.Helper()
			if info, err := a.Inspect(t.Context(), "x"); err != nil || info.Limit != limit || len(info.Holders) != holders {
				t.Errorf("Info = %+v, %v; want %d of %d", info, err, holders, limit)
			}
		}
		// From three to two: new holders can enter when there are fewer than two, and old ones under the same
		// condition.
		old := []*leasetable.Lease{with(a, 3), with(b, 3), with(a, 3)}
		refused(2, 3)
		release(t, old[0])
		refused(2)
		mustShow(3, 2)
		release(t, old[1])
		next := with(b, 2)
		refused(2, 3, 100, 1)
		mustShow(2, 2)
		release(t, old[2])
		last := with(a, 3)
		refused(2, 3)
		// From two to three: when the last holder with a limit of two has gone.
		release(t, next)
		all := []*leasetable.Lease{last, with(b, 3), with(a, 3)}
		mustShow(3, 3)
		refused(2, 3, 4)
		release(t, all...)
		release(t, with(a, 1))
	})
}

func TestTheLimitsOfTheDeadDoNotCount(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		dead := take(t, a, "x", leasetable.WithLimit(1))
		expire(t, db, dead)
		two := take(t, b, "x", leasetable.WithLimit(2))
		release(t, take(t, b, "x", leasetable.WithLimit(2)), two)
	})
}

func TestOptionsThatMakeNoSenseForPermitsAreRefused(t *testing.T) {
	t.Parallel()
	l := newLocker(t, withTables(t, sqltest.SQLite(t)).DB)
	for _, opts := range [][]sqllock.Option{
		{leasetable.WithShared(), leasetable.WithLimit(2)},
		{leasetable.WithShared(), leasetable.WithHoldAtLeast(time.Second)},
		{leasetable.WithHoldAtLeast(time.Second), leasetable.WithLimit(2)},
	} {
		if _, err := tryPermit(t, l, opts...); !errors.Is(err, sqllock.ErrUnsupported) {
			t.Errorf("%v; want ErrUnsupported", err)
		}
	}
	for _, n := range []int{0, -1} {
		if _, err := tryPermit(t, l, leasetable.WithLimit(n)); err == nil || !strings.Contains(err.Error(), "at least 1") {
			t.Errorf("a limit of %d: %v", n, err)
		}
	}
	if _, err := leasetable.NewElector(l, "x", leasetable.WithShared()); !errors.Is(err, sqllock.ErrUnsupported) {
		t.Errorf("an Elector of several leaders: %v", err)
	}
}

// Goroutines and processes that ask at the same moment conflict with each other, but each gets a permit. I31.
func TestNobodyIsRefusedWhileThereIsAPermitLeft(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const each = 16
		lockers := []*leasetable.Locker{newLocker(t, db.DB), newLocker(t, db.DB)}
		var all sync.WaitGroup
		for _, l := range lockers {
			for range each {
				all.Go(func() {
					if _, err := locktest.TryFree(t.Context(), l, "x", leasetable.WithLimit(len(lockers)*each)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if n := count(t, db, "SELECT count(DISTINCT token) FROM sqllock_permit"); n != len(lockers)*each {
			t.Errorf("%d tokens", n)
		}
		if _, err := tryPermit(t, lockers[0], leasetable.WithLimit(len(lockers)*each)); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("one more: %v", err)
		}
	})
}

func TestAllWhoHoldANameTogetherAreShown(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a := newLocker(t, db.DB, leasetable.WithOwner("a"))
		b := newLocker(t, db.DB, leasetable.WithOwner("b"), leasetable.WithTTL(time.Hour))
		one, two := take(t, a, "x", leasetable.WithLimit(5)), take(t, b, "x", leasetable.WithLimit(5))
		take(t, a, "y")
		release(t, take(t, a, "z", leasetable.WithShared()))
		infos, err := b.List(t.Context(), "")
		if err != nil || len(infos) != 3 {
			t.Fatal(infos, err)
		}
		x, y, z := infos[0], infos[1], infos[2]
		if !x.Held || !x.Shared || x.Limit != 5 || len(x.Holders) != 2 || x.Holder != x.Holders[0] || x.Token != two.Token() ||
			x.Holders[0].Owner != "a" || x.Holders[0].Token != one.Token() || x.Holders[1].Owner != "b" || x.Holders[1].Token != two.Token() {
			t.Errorf("x is %+v", x)
		}
		if left := time.Until(x.Holders[1].Until); left < 59*time.Minute || left > 61*time.Minute {
			t.Errorf("a lease of an hour has %v left", left)
		}
		if x.Holders[1].TTL != time.Hour || y.Holder.TTL != 15*time.Second || !y.WaiterSince.IsZero() {
			t.Errorf("the TTLs are %v and %v, and y is wanted since %v", x.Holders[1].TTL, y.Holder.TTL, y.WaiterSince)
		}
		if !y.Held || y.Holder.Owner != "a" || y.Shared || len(y.Holders) != 1 || y.Holders[0] != y.Holder {
			t.Errorf("y is %+v", y)
		}
		if z.Held || z.Holders != nil || z.Holder != (sqllock.Holder{}) {
			t.Errorf("z is %+v", z)
		}
		if info, err := b.Inspect(t.Context(), "x"); err != nil || !info.Held || info.Holder != x.Holder {
			t.Errorf("Inspect = %+v, %v", info, err)
		}
		elector, err := leasetable.NewElector(a, "x")
		if err != nil {
			t.Fatal(err)
		}
		if h, led, err := elector.Leader(t.Context()); led || err != nil {
			t.Errorf("the leader by a name that several hold = %v, %t, %v", h, led, err)
		}
		release(t, one, two)
		if info, err := b.Inspect(t.Context(), "x"); info.Held || err != nil {
			t.Errorf("Inspect of a free name: %+v, %v", info, err)
		}
	})
}

func TestCloseFreesPermits(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		lease := take(t, a, "x", leasetable.WithLimit(2))
		take(t, a, "x", leasetable.WithLimit(2))
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrClosed) {
			t.Errorf("the holder was told %v", cause)
		}
		for range 2 {
			locktest.MustTry(t, b, "x", leasetable.WithLimit(2))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		c := newLocker(t, db.DB)
		if token := locktest.MustTry(t, c, "x").Token(); token < 5 {
			t.Errorf("alone after all were closed: token %d", token)
		}
	})
}

// I34.
func TestAForcedReleaseTakesAllPermitsAndIsTold(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		a, b := newLocker(t, db.DB, leasetable.WithTTL(time.Hour), leasetable.WithOwner("a")), newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		admin := newLocker(t, db.DB)
		shared := leasetable.WithShared()
		all := []*leasetable.Lease{take(t, a, "x", shared), take(t, b, "x", shared), take(t, a, "x", shared)}
		others := []*leasetable.Lease{take(t, a, "y", shared), take(t, b, "z")}
		was, err := admin.ForceRelease(t.Context(), "x")
		if err != nil || !was.Held || was.Holder.Owner != "a" || len(was.Holders) != len(all) || was.Holders[2].Token != all[2].Token() {
			t.Fatalf("ForceRelease = %+v, %v", was, err)
		}
		next := locktest.MustTry(t, admin, "x")
		if next.Token() <= all[2].Token()+1 {
			t.Fatalf("the next has %v", next.Token())
		}
		mustRenew(t, others[0])
		mustRenew(t, others[1])
		for _, lease := range all {
			if cause := await(t, lease); !errors.Is(cause, sqllock.ErrLost) {
				t.Errorf("a holder was told %v", cause)
			}
			if err := lease.Release(t.Context()); !errors.Is(err, sqllock.ErrLost) {
				t.Errorf("Release: %v", err)
			}
		}
		release(t, append(others, next)...)
		if was, err := admin.ForceRelease(t.Context(), "x"); was.Held || err != nil {
			t.Errorf("ForceRelease of a free name: %+v, %v", was, err)
		}
	})
}
