package pg_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// optioned is a Locker that adds an option to every acquisition.
type optioned struct {
	*pg.Locker
	option func(name string) sqllock.Option
}

func (o optioned) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return o.Locker.TryAcquire(ctx, name, append(opts, o.option(name))...)
}

func (o optioned) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (sqllock.Lock, error) {
	return o.Locker.Acquire(ctx, name, append(opts, o.option(name))...)
}

func pairOf(name string) sqllock.Option {
	key := pg.Key(name)
	return pg.WithPair(int32(key>>32), int32(key))
}

// Every statement treats a pair in its own way.
func TestPairsAreLocksLikeAnyOther(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Exercise(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		return optioned{newLocker(t, db), pairOf}
	}, locktest.Options{
		Lose: func(t *testing.T, name string) {
			t.Helper()
			if _, ended, err := newLocker(t, db).Terminate(t.Context(), name, pairOf(name)); err != nil || !ended {
				t.Fatalf("Terminate: %t, %v", ended, err)
			}
		},
		Unsupported: sqllock.WithTTL(1),
	})
}

func TestARawKeyIsWhatOtherProgramsLock(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	for _, test := range []struct {
		option sqllock.Option
		sql    string
	}{
		{pg.WithKey(42), "42"},
		{pg.WithKey(math.MinInt64), "'-9223372036854775808'::bigint"},
		{pg.WithPair(1, 2), "1, 2"},
		{pg.WithPair(-1, math.MinInt32), "-1, '-2147483648'::int"},
		{pg.WithPair(math.MaxInt32, -3), "2147483647, -3"},
	} {
		session, err := db.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		other := func(function string) (ok bool) {
			if err := session.GetContext(t.Context(), &ok, fmt.Sprintf("SELECT pg_%s(%s)", function, test.sql)); err != nil {
				t.Fatal(err)
			}
			return ok
		}
		for _, shared := range []string{"", "_shared"} {
			opts := []sqllock.Option{test.option}
			if shared != "" {
				opts = append(opts, pg.WithShared())
			}
			if !other("try_advisory_lock") {
				t.Fatalf("%s is not free", test.sql)
			}
			if _, err := l.TryAcquire(t.Context(), "raw", opts...); !errors.Is(err, sqllock.ErrHeld) {
				t.Errorf("%s is held by another program; TryAcquire%s: %v", test.sql, shared, err)
			}
			if info, err := l.Inspect(t.Context(), "raw", test.option); err != nil || !info.Held || info.Holder.Session == 0 {
				t.Errorf("Inspect of %s: %+v, %v", test.sql, info, err)
			}
			if !other("advisory_unlock") {
				t.Fatalf("%s was not held", test.sql)
			}
			lock, err := l.TryAcquire(t.Context(), "raw", opts...)
			if err != nil {
				t.Fatal(err)
			}
			if other("try_advisory_lock") {
				t.Errorf("%s was taken by another program while it was held", test.sql)
			}
			if other("try_advisory_lock_shared") != (shared != "") {
				t.Errorf("another program and a share of %s that TryAcquire%s took", test.sql, shared)
			}
			mustRelease(t, lock)
			if shared != "" {
				other("advisory_unlock_shared")
			}
		}
	}
	if n := locksOn(t, db); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

// A pair and a key with the same bits are two locks.
func TestPairsAndKeysDoNotExcludeEachOther(t *testing.T) {
	t.Parallel()
	l := newLocker(t, sqltest.Postgres(t))
	for _, option := range []sqllock.Option{pg.WithKey(1<<32 | 2), pg.WithPair(1, 2)} {
		lock, err := l.TryAcquire(t.Context(), "raw", option)
		if err != nil {
			t.Fatal(err)
		}
		defer mustRelease(t, lock)
	}
}

func TestATransactionTakesRawKeysToo(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		for _, option := range []sqllock.Option{pg.WithKey(7), pg.WithPair(-7, 7)} {
			for _, lock := range []lockTx{pg.LockTx, pg.TryLockTx} {
				tx := begin(t)
				if err := lock(t.Context(), tx, "raw", option); err != nil {
					t.Fatal(err)
				}
				if _, err := newLocker(t, db).TryAcquire(t.Context(), "raw", option); !errors.Is(err, sqllock.ErrHeld) {
					t.Errorf("a session takes the key that a transaction has: %v", err)
				}
				if err := tx.commit(); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
