package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Locked rows do not take all connections: requests for other names get one. I38.
func TestManyLockedRowsDelayNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, dead, alone := newLocker(t, db.DB), newLocker(t, db.DB, leasetable.WithTTL(2*time.Hour)), newLocker(t, db.DB, leasetable.WithTTL(3*time.Hour))
		var names []string
		var held []*leasetable.Lease
		for i := range 4 {
			free, mine, left := fmt.Sprint("free ", i), fmt.Sprint("held ", i), fmt.Sprint("left ", i)
			names = append(names, free, mine, left)
			release(t, take(t, l, free))
			held = append(held, take(t, l, mine))
			take(t, dead, left)
		}
		for i := range 6 {
			take(t, alone, fmt.Sprint("followed ", i))
		}
		run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+" WHERE ttl_us >= 7200000000")
		release(t, take(t, l, "shared", leasetable.WithLimit(2)))
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 6 {
			if err := take(t, dead, fmt.Sprint("guarded ", i), leasetable.WithShared(), sqllock.WithTTL(time.Minute)).Guard(t.Context(), leasetable.SQLTx(tx)); err != nil {
				t.Fatal(err)
			}
		}
		unpin := pinAll(t, db, names...)

		ctx, cancel := context.WithCancel(t.Context())
		stuck := make(chan string, len(names))
		var all sync.WaitGroup
		for _, lease := range held {
			all.Go(func() { _ = lease.Release(context.Background()) }) // gives up after some seconds, and the others do not
		}
		for _, name := range names {
			if strings.HasPrefix(name, "held") {
				continue
			}
			all.Go(func() {
				if lock, err := l.Acquire(ctx, name); err == nil {
					_ = lock.Release(context.Background()) // the lease ends with the Locker in any case
				}
				stuck <- name
			})
		}
		for i := range 6 {
			all.Go(func() { _, _ = l.ForceRelease(ctx, fmt.Sprint("guarded ", i)) })
		}
		eventually(t, func() bool { return leasetable.Work(l).Stats().InUse >= 3 })
		for range 40 {
			release(t, take(t, l, "another"))
		}
		var followers sync.WaitGroup
		for i := range 6 {
			followers.Go(func() {
				lock, err := l.Acquire(t.Context(), fmt.Sprint("followed ", i))
				if err == nil {
					err = lock.Release(t.Context())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		followers.Wait()
		release(t, take(t, l, "shared", leasetable.WithLimit(2)))
		release(t, take(t, l, "shared")) // exclusive, in the row of the previous holders
		select {
		case name := <-stuck:
			t.Errorf("%s was sooner", name)
		default:
		}
		cancel()
		unpin()
		_ = tx.Rollback()
		all.Wait()
	})
}

// Names that another transaction has inserted but not committed act like locked rows that cannot be read. I38.
func TestManyNamesThatAreBeingInsertedDelayNobodyElse(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer cancel()
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprint("new ", i))
			if _, err := tx.ExecContext(t.Context(), db.Rebind("INSERT INTO sqllock_lock (name, token, acquired_at) VALUES (?, 0, CURRENT_TIMESTAMP)"), []byte(names[i])); err != nil {
				t.Fatal(err)
			}
		}
		stuck := make(chan error, len(names))
		for _, name := range names {
			all.Go(func() {
				lock, err := l.Acquire(ctx, name)
				if err == nil {
					_ = lock.Release(context.Background()) // the lease ends with the Locker in any case
				}
				stuck <- err
			})
		}
		eventually(t, func() bool { return leasetable.Work(l).Stats().InUse >= 3 })
		for i := range 10 {
			release(t, take(t, l, fmt.Sprint("another ", i)))
			release(t, take(t, l, "same"))
		}
		select {
		case err := <-stuck:
			t.Errorf("one of them was sooner: %v", err)
		default:
		}
	})
}

// They do not delay a handoff between goroutines, or a waiter, either.
func TestManyLockedRowsDelayNoPassing(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		var names []string
		for i := range 8 {
			names = append(names, fmt.Sprint("free ", i))
			release(t, take(t, l, names[i]))
		}
		unpin := pinAll(t, db, names...)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for _, name := range names {
			all.Go(func() {
				if lock, err := l.Acquire(ctx, name); err == nil {
					_ = lock.Release(context.Background()) // the lease ends with the Locker in any case
				}
			})
		}
		eventually(t, func() bool { return leasetable.Work(l).Stats().InUse >= 3 })

		lease := take(t, l, "passed on")
		followers := line(t, l, "passed on", 3)
		for range 3 {
			release(t, lease)
			lease = mustGet(t, followers)
		}
		release(t, lease)

		held := take(t, other, "waited for")
		all.Go(func() {
			lock, err := l.Acquire(t.Context(), "waited for")
			if err == nil {
				err = lock.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			cancel()
		})
		eventually(t, func() bool { return leasetable.Waits(l, "waited for") })
		release(t, held)
		<-ctx.Done()
		unpin()
		all.Wait()
	})
}

// Waiters for such rows get an error when the Locker is closed, and nothing stays held. I15.
func TestManyLockedRowsDelayNoClose(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		var names []string
		var held []*leasetable.Lease
		for i := range 8 {
			free, mine := fmt.Sprint("free ", i), fmt.Sprint("held ", i)
			names = append(names, free, mine)
			release(t, take(t, l, free))
			held = append(held, take(t, l, mine))
		}
		unpin := pinAll(t, db, names...)
		var all sync.WaitGroup
		for i, lease := range held {
			all.Go(func() { _ = lease.Release(context.Background()) }) // the row is locked
			all.Go(func() {
				if lock, err := l.Acquire(context.Background(), fmt.Sprint("free ", i)); !errors.Is(err, sqllock.ErrClosed) {
					t.Errorf("Acquire = %v, %v", lock, err)
				}
			})
		}
		eventually(t, func() bool { return leasetable.Work(l).Stats().InUse >= 3 })
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		all.Wait()
		unpin()
		other := newLocker(t, db.DB)
		for _, name := range names { // long before the leases expire
			mustGet(t, acquiring(other, name))
		}
	})
}
