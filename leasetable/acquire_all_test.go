package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/event"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/memory"
	"github.com/sqllock/sqllock/leasetable/internal/store"
	"github.com/sqllock/sqllock/sqltest"
)

// routes is a Locker of several Lockers: the last byte of a name chooses one.
type routes []*leasetable.Locker

func (r routes) to(name string) *leasetable.Locker { return r[int(name[len(name)-1])%len(r)] }

func (r routes) TryAcquire(ctx context.Context, name string, opts ...sqllock.Option) (*leasetable.Lease, error) {
	return r.to(name).TryAcquire(ctx, name, opts...)
}

func (r routes) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (*leasetable.Lease, error) {
	return r.to(name).Acquire(ctx, name, opts...)
}

func TestNamesOfSeveralLockersAreEachTakenInTheirDatabase(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		dbs := []*sqltest.Database{db, withTables(t, sqltest.SQLite(t))}
		r := routes{newLocker(t, dbs[0].DB), newLocker(t, dbs[1].DB)}
		names := make([]string, 200)
		for i := range names {
			names[i] = fmt.Sprintf("%03d", i)
		}
		all, err := sqllock.AcquireAll(t.Context(), r, names)
		if err != nil {
			t.Fatal(err)
		}
		for i, db := range dbs {
			l := newLocker(t, db.DB)
			held := make([]string, 0, len(names)/2)
			infos, err := l.List(t.Context(), "", leasetable.OnlyHeld())
			if err != nil {
				t.Fatal(err)
			}
			for _, info := range infos {
				if r.to(info.Name) != r[i] {
					t.Errorf("%s was taken in the other database", info.Name)
				}
				held = append(held, info.Name)
			}
			if len(held) != len(names)/2 {
				t.Errorf("%d names: %s", len(held), strings.Join(held, ", "))
			}
		}
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A caller that cancels its wait leaves none of its names held. I39.
func TestNamesOfACallerWhoLeavesAreGivenBack(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		names := make([]string, 50)
		for i := range names {
			names[i] = fmt.Sprintf("%03d", i)
		}
		if err := takeAll(t, l, "warm", 2).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				all, err := sqllock.AcquireAll(ctx, l, names)
				if err == nil {
					err = all.Release(context.Background())
				}
				_ = err // it was canceled, or not
			}()
			mine := names[len(names)-1]
			eventually(t, func() bool {
				info, err := other.Inspect(t.Context(), mine)
				select {
				case <-done:
					return true
				default:
					return info.Held || err != nil
				}
			})
			cancel()
			<-done
		}
		if _, err := sqllock.AcquireAll(t.Context(), other, names); err != nil {
			t.Error(err)
		}
	})
}

// The attempt for all names at once is followed by one for the first name, which is reported.
func TestAcquireAllThatFailsIsReportedOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	failed := 0
	l := newLocker(t, sqltest.SQLite(t).DB, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		if e.Kind == event.Failed {
			failed++
		}
	}))
	if _, err := sqllock.AcquireAll(t.Context(), l, []string{"a", "b"}); !errors.Is(err, sqllock.ErrSchema) || failed != 1 {
		t.Errorf("AcquireAll without tables: %v, reported %d times", err, failed)
	}
}

// The name a is acquired and given back: no caller has had it.
func TestNamesThatTryAcquireAllGivesBackAreNoLocksOfTheHook(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	var mu sync.Mutex
	told := make(map[event.Kind][]string) // guarded by mu
	db := withTables(t, sqltest.SQLite(t)).DB
	l := newLocker(t, db, leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
		mu.Lock()
		defer mu.Unlock()
		told[e.Kind] = append(told[e.Kind], e.Name)
		if (e.Kind == event.Failed) != errors.Is(e.Err, sqllock.ErrHeld) {
			t.Errorf("%s %s: %v", e.Kind, e.Name, e.Err)
		}
	}))
	names, other := []string{"a", "b"}, take(t, newLocker(t, db), "b")
	if _, err := l.TryAcquireAll(t.Context(), names); !errors.Is(err, sqllock.ErrHeld) {
		t.Fatal(err)
	}
	release(t, other)
	leases, err := l.TryAcquireAll(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	release(t, leases...)
	mu.Lock()
	defer mu.Unlock()
	for _, kind := range []event.Kind{event.Failed, event.Acquired, event.Released} {
		if slices.Sort(told[kind]); !slices.Equal(told[kind], names) {
			t.Errorf("%s: %q", kind, told[kind])
		}
	}
	if told[event.Lost] != nil {
		t.Errorf("lost: %q", told[event.Lost])
	}
}

// twice is a Locker of a user that gives the first lock of a name back, and acquires another one.
type twice struct{ *leasetable.Locker }

func (l twice) Acquire(ctx context.Context, name string, opts ...sqllock.Option) (*leasetable.Lease, error) {
	first, err := l.Locker.Acquire(ctx, name, opts...)
	if err == nil {
		err = first.Release(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l.Locker.Acquire(ctx, name, opts...)
}

func TestALockThatALockerOfAUserGivesBackIsNoLockOfTheHook(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var told []event.Kind
		l := keep(t, memory.NewServer(memory.Postgres).Store(), leasetable.WithHook(func(_ context.Context, e sqllock.Event) {
			if e.Name != "" {
				told = append(told, e.Kind)
			}
		}))
		locks, err := sqllock.AcquireAll(t.Context(), twice{l}, []string{"a"})
		if err != nil {
			t.Fatal(err)
		}
		if err := locks.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if want := []event.Kind{event.Failed, event.Acquired, event.Released}; !slices.Equal(told, want) {
			t.Errorf("told %q; want %q", told, want)
		}
	})
}

// The name b is held by the same Locker, and who holds it is not answered for a while. The claim of the other name has time
// left for its statement, whose outcome is then known: the lease goes on.
func TestANameThatWaitsForAnotherOneInVainIsNotInDoubt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		s := &scripted{Store: server.Store()}
		l := keep(t, s)
		held := take(t, l, "b")
		s.read = func(ctx context.Context, name string) (store.State, error) {
			pass(5 * time.Second)
			return s.Store.Read(ctx, name)
		}
		_, err := l.TryAcquireAll(t.Context(), []string{"a", "b"})
		if !errors.Is(err, sqllock.ErrHeld) || errors.Is(err, dberr.ErrSlow) {
			t.Errorf("TryAcquireAll: %v", err)
		}
		release(t, take(t, l, "c"), held)
		if all, _ := server.Leases(); all != 1 {
			t.Errorf("%d leases were opened", all)
		}
	})
}

// I39. The minimum hold is for what has run.
func TestNamesThatAcquireAllGivesBackAreFreeAtOnce(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		l, other := keep(t, server.Store()), keep(t, server.Store())
		both, hold := []string{"a", "b"}, leasetable.WithHoldAtLeast(time.Hour)
		free := func(name string) {
			t.Helper()
			release(t, take(t, other, name))
		}
		b := take(t, other, "b")
		if _, err := sqllock.AcquireAll(t.Context(), l, both, hold, sqllock.WithWait(0)); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("AcquireAll: %v", err)
		}
		free("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sqllock.AcquireAll(ctx, l, both, hold); !errors.Is(err, sqllock.ErrHeld) { // it has a, and waits for b
			t.Errorf("AcquireAll: %v", err)
		}
		free("a")
		time.AfterFunc(time.Second, func() { _ = b.Release(context.Background()) })
		began := time.Now()
		all, err := sqllock.AcquireAll(t.Context(), l, both, hold)
		if err != nil || time.Since(began) > time.Minute {
			t.Fatalf("AcquireAll: %v, after %v", err, time.Since(began))
		}
		if err := all.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := other.TryAcquire(t.Context(), "a"); !errors.Is(err, sqllock.ErrHeld) {
			t.Errorf("TryAcquire in the minimum hold: %v", err)
		}
	})
}

// Of what it has it says so at once, and waits for nothing in vain.
func TestAcquireAllEndsWithAPartThatIsLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		l, other := keep(t, server.Store()), keep(t, server.Store())
		take(t, other, "b")
		time.AfterFunc(time.Minute, func() {
			if _, err := other.ForceRelease(context.Background(), "a"); err != nil {
				t.Error(err)
			}
		})
		began := time.Now()
		_, err := sqllock.AcquireAll(t.Context(), l, []string{"a", "b"}, sqllock.WithWait(10*time.Minute))
		if !errors.Is(err, sqllock.ErrLost) || time.Since(began) > 2*time.Minute {
			t.Errorf("AcquireAll: %v, after %v", err, time.Since(began))
		}
	})
}

func TestAcquireAllDoesNotWaitBeforeAnErrorThatDoesNotPass(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	synctest.Test(t, func(t *testing.T) {
		server := memory.NewServer(memory.Postgres)
		l, other := keep(t, server.Store()), keep(t, server.Store())
		take(t, other, "a")
		began := time.Now()
		_, err := sqllock.AcquireAll(t.Context(), l, []string{"a", strings.Repeat("x", 2000)}, sqllock.WithWait(time.Hour))
		if !errors.Is(err, sqllock.ErrName) || time.Since(began) > time.Minute {
			t.Errorf("AcquireAll: %v, after %v", err, time.Since(began))
		}
	})
}
