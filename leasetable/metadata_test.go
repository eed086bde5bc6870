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

// takeWith acquires a name, which must be free, with metadata.
func takeWith(t *testing.T, l *leasetable.Locker, name, metadata string) *leasetable.Lease {
	t.Helper()
	return take(t, l, name, leasetable.WithMetadata(metadata))
}

// mustShow checks the metadata of a held name, with every method that returns it.
func mustShow(t *testing.T, l *leasetable.Locker, name, want string) {
	t.Helper()
	info, err := l.Inspect(t.Context(), name)
	if err != nil || !info.Held || info.Holder.Metadata != want {
		t.Errorf("Inspect(%q) = %+v, %v; want %q", name, info, err, want)
	}
	if h := mustBeHeld(t, l, name); h.Metadata != want {
		t.Errorf("the *HeldError of %q has %q; want %q", name, h.Metadata, want)
	}
	if infos, err := l.List(t.Context(), name); err != nil || len(infos) == 0 || infos[0].Holder.Metadata != want {
		t.Errorf("List(%q) = %+v, %v; want %q", name, infos, err, want)
	}
}

// odd has metadata that a database could misread as text.
var odd = map[string]string{
	"none": "", "zero": "a\x00b", "spaces": " a  ", "emoji": "🔒", "no UTF-8": "\xff\xfe\x80", "long": strings.Repeat("\xf0", 1024),
}

func TestMetadataIsThatOfTheLastAcquisition(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		other := newLocker(t, db.DB)
		for name, metadata := range odd {
			l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
			lease := takeWith(t, l, name, metadata) // of a new name
			mustShow(t, other, name, metadata)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if info, err := other.Inspect(t.Context(), name); err != nil || info.Held || info.Holder != (sqllock.Holder{}) {
				t.Errorf("after the release Inspect = %+v, %v", info, err)
			}
			lease = take(t, l, name)
			mustShow(t, other, name, "")
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			takeWith(t, l, name, metadata) // of a free name
			mustShow(t, other, name, metadata)
			run(t, db, "UPDATE sqllock_lock SET metadata = ? WHERE name = ?", []byte("old"), []byte(name))
			expireLease(t, db, name)
			next := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
			takeWith(t, next, name, metadata) // of an expired lease
			mustShow(t, other, name, metadata)
			expireLease(t, db, name)
			take(t, newLocker(t, db.DB), name)
			mustShow(t, other, name, "")
		}
	})
}

func TestMetadataThatIsTooLongIsNotSent(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		long := strings.Repeat("x", 1025)
		if _, err := l.TryAcquire(t.Context(), "x", leasetable.WithMetadata(long)); err == nil || !strings.Contains(err.Error(), "1025 bytes") {
			t.Errorf("TryAcquire: %v", err)
		}
		if n := leaseRows(t, db); n != 0 {
			t.Errorf("%d leases were opened", n)
		}
		lease := takeWith(t, l, "x", "short")
		if err := lease.SetMetadata(t.Context(), long); err == nil || !strings.Contains(err.Error(), "1025 bytes") {
			t.Errorf("SetMetadata: %v", err)
		}
		mustShow(t, l, "x", "short")
	})
}

func TestMetadataIsShownWhileTheNameIsKept(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		lock := locktest.MustTry(t, l, "x", leasetable.WithHoldAtLeast(time.Hour), leasetable.WithMetadata("begun"))
		if err := lock.SetMetadata(t.Context(), "done"); err != nil {
			t.Error(err)
		}
		if err := lock.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustShow(t, newLocker(t, db.DB), "x", "done")
	})
}

func TestNamesThatAreTakenTogetherHaveEachTheirMetadata(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		const names = 60
		for round := range 3 {
			var all sync.WaitGroup
			leases := make([]*leasetable.Lease, names)
			metadata := func(i int) string {
				if i%3 == 0 {
					return ""
				}
				return fmt.Sprintf("%d of round %d \x00\xff", i, round)
			}
			for i := range names {
				all.Go(func() { leases[i] = takeWith(t, l, fmt.Sprintf("name %02d", i), metadata(i)) })
			}
			all.Wait()
			if t.Failed() {
				return
			}
			infos, err := l.List(t.Context(), "name ")
			if err != nil || len(infos) != names {
				t.Fatal(len(infos), err)
			}
			for i, info := range infos {
				if info.Holder.Metadata != metadata(i) {
					t.Errorf("%s has %q", info.Name, info.Holder.Metadata)
				}
				all.Go(func() {
					if err := leases[i].Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
	})
}

func TestANameThatIsPassedOnHasTheMetadataOfItsNextHolder(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := takeWith(t, l, "x", "0")
		const waiters = 4
		next := make(chan *leasetable.Lease, waiters)
		for n := range waiters {
			go func() {
				var opts []sqllock.Option
				if n%2 == 0 {
					opts = append(opts, leasetable.WithMetadata(fmt.Sprint(n+1)))
				}
				lock, err := l.Acquire(context.Background(), "x", opts...)
				if err != nil {
					t.Error(err)
				}
				next <- lock
			}()
			eventually(t, func() bool { return leasetable.Waiting(l, "x") == n+1 })
		}
		for _, want := range []string{"1", "", "3", ""} {
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease = mustGet(t, next)
			mustShow(t, other, "x", want)
		}
	})
}

// The handoff statement attaches the metadata of the first waiter in the queue. If that waiter leaves, the next one has
// other metadata.
func TestANameThatIsPassedOnToTheSecondInLineHasItsMetadata(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, dsn := through(t, db)
		l, other := newLocker(t, open(t, db.DriverName(), dsn)), newLocker(t, db.DB)
		lease := takeWith(t, l, "passed on", "holder")
		ctx, leave := context.WithCancel(t.Context())
		type result struct {
			lock *leasetable.Lease
			err  error
		}
		results := make(chan result, 2)
		for i, ctx := range []context.Context{ctx, context.Background()} {
			go func() {
				lock, err := l.Acquire(ctx, "passed on", leasetable.WithMetadata(fmt.Sprint(i+1)))
				results <- result{lock, err}
			}()
			eventually(t, func() bool { return leasetable.Waiting(l, "passed on") == i+1 })
		}
		passOn := p.delayAnswerTo(onWire(db, []byte("passed on")))
		began, released := time.Now(), make(chan error, 1)
		go func() { released <- lease.Release(context.Background()) }()
		eventually(t, func() bool { return count(t, db, "SELECT token FROM sqllock_lock") == 2 })
		info, err := other.Inspect(t.Context(), "passed on")
		leave()
		r, took := <-results, time.Since(began)
		passOn()
		if took > 2*time.Second { // a handoff gives up after three, and the name is released
			t.Logf("the machine stalled: this took %v", took)
			return
		}
		if err != nil || info.Holder.Metadata != "1" {
			t.Errorf("the name that is passed on is %+v, %v", info, err)
		}
		if !errors.Is(r.err, context.Canceled) {
			t.Fatalf("who has left: %v", r.err)
		}
		r = <-results
		if err := errors.Join(<-released, r.err); err != nil {
			t.Fatal(err)
		}
		mustShow(t, other, "passed on", "2")
	})
}

func TestAHolderChangesItsMetadata(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Hour)), newLocker(t, db.DB)
		lease := take(t, l, "x")
		for _, metadata := range odd {
			for range 2 { // the second time nothing changes
				if err := lease.SetMetadata(t.Context(), metadata); err != nil {
					t.Fatal(err)
				}
				mustShow(t, other, "x", metadata)
			}
		}
		if err := lease.SetMetadata(t.Context(), ""); err != nil {
			t.Error(err)
		}
		mustShow(t, other, "x", "")
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.SetMetadata(dead, "never"); !errors.Is(err, context.Canceled) {
			t.Errorf("SetMetadata with a dead context: %v", err)
		}

		if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		next := takeWith(t, other, "x", "next")
		if err := lease.SetMetadata(t.Context(), "stale"); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("SetMetadata of a lock that was lost: %v", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		mustShow(t, other, "x", "next")
		if err := next.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := next.SetMetadata(t.Context(), ""); !errors.Is(err, sqllock.ErrReleased) {
			t.Errorf("SetMetadata after Release: %v", err)
		}
	})
}

func TestMetadataWhoseAnswerIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		p, l := newLockerThrough(t, db, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "unanswered")
		p.loseAnswerTo(onWire(db, []byte("unanswered")))
		if err := lease.SetMetadata(t.Context(), "noted"); err != nil || p.answersLost() != 1 {
			t.Errorf("SetMetadata: %v; %d answers lost", err, p.answersLost())
		}
		mustShow(t, newLocker(t, db.DB), "unanswered", "noted")
	})
}

// The row of a permit has nothing but its holder. Its lease has other permits, too, and cannot be moved for one of
// them.
func TestWhatIsOfOneHolderIsRefusedForAPermit(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		for _, option := range []sqllock.Option{leasetable.WithShared(), leasetable.WithLimit(2)} {
			for _, try := range []func(context.Context, string, ...sqllock.Option) (*leasetable.Lease, error){l.TryAcquire, l.Acquire} {
				if _, err := try(t.Context(), "x", option, leasetable.WithMetadata("")); !errors.Is(err, sqllock.ErrUnsupported) {
					t.Errorf("with metadata: %v", err)
				}
			}
			lease := take(t, l, "x", option)
			_, err := lease.Export(t.Context(), time.Minute)
			for what, err := range map[string]error{
				"SetMetadata": lease.SetMetadata(t.Context(), ""), "Extend": lease.Extend(t.Context(), time.Second), "Export": err,
			} {
				if !errors.Is(err, sqllock.ErrUnsupported) {
					t.Errorf("%s: %v", what, err)
				}
			}
			ticket := export(t, take(t, l, "y"), time.Minute)
			if _, err := other.Adopt(t.Context(), ticket, option); !errors.Is(err, sqllock.ErrUnsupported) {
				t.Errorf("Adopt: %v", err)
			}
			release(t, takeOn(t, other, ticket), lease)
		}
	})
}

func TestANameThatWasSharedHasTheMetadataOfWhoHasItAlone(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		for _, metadata := range []string{"first", "second"} {
			lease := takeWith(t, l, "x", metadata)
			mustShow(t, other, "x", metadata)
			release(t, lease)
			lease = take(t, l, "x", leasetable.WithShared())
			mustShow(t, other, "x", "")
			release(t, lease)
		}
	})
}

func TestNamesOfAnAcquireAllHaveMetadataOfAnyLength(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		for _, metadata := range []string{"short", strings.Repeat("x", 128), strings.Repeat("y", 129), odd["long"]} {
			all, err := sqllock.AcquireAll(t.Context(), l, []string{"a", "b", "c"}, leasetable.WithMetadata(metadata))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"a", "b", "c"} {
				mustShow(t, l, name, metadata)
			}
			if err := all.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}
