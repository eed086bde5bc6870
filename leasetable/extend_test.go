package leasetable_test

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestAStoppedHolderThatExtendedItsLockKeepsIt(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		h := startHolder(t, db)
		token := h.mustHold(t)
		h.ask(t, "extend")
		if got := h.line(t); got != "extended: <nil>" {
			t.Fatal(got)
		}
		h.signal(t, syscall.SIGSTOP)
		l := newLocker(t, db.DB)
		ctx, cancel := context.WithTimeout(t.Context(), holderTTL*3/2) // longer than the lease would last without the extension
		defer cancel()
		if _, err := l.Acquire(ctx, "x"); !errors.Is(err, sqllock.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire while the holder is stopped: %v", err)
		}
		h.ask(t, "release")
		h.signal(t, syscall.SIGCONT)
		if got := h.line(t); got != "released: <nil>" {
			t.Errorf("the stopped holder %s", got)
		}
		if next := take(t, l, "x").Token(); next != token+1 {
			t.Errorf("the next holder has token %d, after %d", next, token)
		}
	})
}

func TestAnExtendedLockIsAsAnyOther(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const d = 10 * time.Minute
		l, other := newLocker(t, db.DB, leasetable.WithTTL(time.Minute)), newLocker(t, db.DB)
		first, second, plain := take(t, l, "first"), take(t, l, "second"), take(t, l, "plain")
		for _, lease := range []*leasetable.Lease{first, second, second} {
			if err := lease.Extend(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			if left := lease.Remaining(); left < d || left > 3*d/2 || lease.Token() != 1 {
				t.Errorf("%v are left with token %d", left, lease.Token())
			}
		}
		if left := plain.Remaining(); left > time.Minute {
			t.Errorf("of another lock %v are left", left)
		}
		if n := leaseRows(t, db); n != 2 {
			t.Errorf("%d leases; want one for both extended locks", n)
		}
		if h := mustBeHeld(t, other, "first"); time.Until(h.Until) < d || h.Token != 1 {
			t.Errorf("others see %v", h)
		}
		if err := first.SetMetadata(t.Context(), "x"); err != nil {
			t.Error(err)
		}
		mustVerify(t, first)
		mustRenew(t, first)
		if err := first.Extend(t.Context(), 3*d); err != nil || first.Remaining() < 3*d {
			t.Errorf("another Extend: %v, %v", err, first.Remaining())
		}
		next := line(t, l, "first", 1)
		if err := errors.Join(first.Release(t.Context()), second.Release(t.Context()), plain.Release(t.Context())); err != nil {
			t.Error(err)
		}
		if lease := mustGet(t, next); lease.Token() <= first.Token() || lease.Remaining() > time.Minute {
			t.Errorf("the next holder has token %d for %v", lease.Token(), lease.Remaining())
		}
		take(t, other, "second")
		if err := first.Extend(t.Context(), d); !errors.Is(err, sqllock.ErrReleased) {
			t.Errorf("Extend after Release: %v", err)
		}
	})
}

func TestWhatIsSureAlreadyIsNotExtended(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		lease := take(t, l, "x")
		if err := lease.Extend(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		if n, renewals := leaseRows(t, db), count(t, db, "SELECT max(renewals) FROM sqllock_lease"); n != 1 || renewals != 0 {
			t.Errorf("%d leases, %d renewals", n, renewals)
		}
		for _, d := range []time.Duration{0, -1, math.MinInt64, 366 * 24 * time.Hour, math.MaxInt64} {
			if err := lease.Extend(t.Context(), d); err == nil || lease.Context().Err() != nil {
				t.Errorf("Extend(%v): %v", d, err)
			}
		}
		if err := lease.Extend(t.Context(), 365*24*time.Hour); err != nil || lease.Remaining() < 365*24*time.Hour {
			t.Errorf("Extend by a year: %v, %v", err, lease.Remaining())
		}
		dead, cancel := context.WithCancel(t.Context())
		cancel()
		if err := lease.Extend(dead, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("Extend with a dead context: %v", err)
		}
		mustVerify(t, lease)
	})
}

// If a renewal is enough to guarantee the duration, no other lease is needed.
func TestALockIsExtendedByARenewalIfThatIsEnough(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB, leasetable.WithTTL(30*time.Second))
		lease := take(t, l, "x")
		const d = 22 * time.Second // 3 s less than the initial value
		eventually(t, func() bool { return lease.Remaining() < d })
		if err := lease.Extend(t.Context(), d); err != nil || lease.Remaining() < d-10*time.Second {
			t.Errorf("Extend: %v, %v", err, lease.Remaining())
		}
		if n := leaseRows(t, db); n != 1 {
			t.Errorf("%d leases", n)
		}
	})
}

func leaseOf(t *testing.T, db *sqltest.Database, name string) (id []byte) {
	t.Helper()
	if err := db.GetContext(t.Context(), &id, db.Rebind("SELECT lease_id FROM sqllock_lock WHERE name = ?"), []byte(name)); err != nil {
		t.Fatal(err)
	}
	return id
}

func TestALockThatSomebodyTookIsNotExtended(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		lease := take(t, l, "x")
		if _, err := other.ForceRelease(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		next := take(t, other, "x")
		if err := lease.Extend(t.Context(), time.Hour); !errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Extend: %v", err)
		}
		if cause := context.Cause(lease.Context()); !errors.Is(cause, sqllock.ErrLost) {
			t.Errorf("the holder was told %v", cause)
		}
		mustVerify(t, next)
	})
}

func TestAnExtendedLockGuards(t *testing.T) {
	t.Parallel()
	onEveryTx(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) guarded) {
		l := newLocker(t, db.DB)
		lease := take(t, l, t.Name())
		tx := begin(t)
		if err := tx.exec("SELECT count(*) FROM sqllock_lock"); err != nil { // its snapshot has the name on the previous lease
			t.Fatal(err)
		}
		if err := lease.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		err := lease.Guard(t.Context(), tx.Tx)
		if db.Engine == sqltest.EngineMariaDB && !errors.Is(err, sqllock.ErrLost) {
			err = nil // since version 11.6: the snapshot is older than the move
		}
		if err != nil {
			t.Errorf("Guard: %v", err)
		}
		tx.rollback()
		tx = begin(t)
		if err := errors.Join(lease.Guard(t.Context(), tx.Tx), tx.exec(write), tx.commit()); err != nil {
			t.Error(err)
		}
	})
}

// A transaction whose snapshot is older than the move fails like one whose rows were changed. The error does not say
// that the lock was lost.
func TestASnapshotFromBeforeAMoveIsNotALostLock(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lease := take(t, newLocker(t, db.DB), "x")
		tx, err := db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		var n int
		if err := tx.GetContext(t.Context(), &n, "SELECT count(*) FROM sqllock_lock"); err != nil {
			t.Fatal(err)
		}
		if err := lease.Extend(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := lease.Guard(t.Context(), leasetable.SQLTx(tx)); errors.Is(err, sqllock.ErrLost) {
			t.Errorf("Guard: %v", err)
		}
	})
}

func TestALockGuardsWhileItIsNotKnownWhetherItWasMoved(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		lease, extended, passOn := halfway(t, db)
		tx, err := db.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Rollback()); err != nil {
			t.Error(err)
		}
		mustVerify(t, lease)
		passOn()
		if err := <-extended; err != nil {
			t.Error(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Whatever coincides with an extension, nothing stays held in the end, and no lease is left. I26.
func TestExtensionsMeetReleasesAndNotes(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l, other := newLocker(t, db.DB), newLocker(t, db.DB)
		for round := range 20 {
			lease := take(t, l, "x")
			var all sync.WaitGroup
			for _, d := range []time.Duration{time.Minute, time.Hour} {
				all.Go(func() {
					if err := lease.Extend(context.Background(), d); err != nil && !errors.Is(err, sqllock.ErrReleased) {
						t.Errorf("Extend: %v", err)
					}
				})
			}
			all.Go(func() {
				if err := lease.SetMetadata(context.Background(), "x"); err != nil && !errors.Is(err, sqllock.ErrReleased) {
					t.Errorf("SetMetadata: %v", err)
				}
			})
			all.Go(func() {
				if err := lease.Verify(context.Background()); err != nil && !errors.Is(err, sqllock.ErrReleased) {
					t.Errorf("Verify: %v", err)
				}
			})
			all.Go(func() {
				if round%2 == 0 {
					eventually(t, func() bool { return lease.Remaining() > 20*time.Second })
				}
				if err := lease.Release(context.Background()); err != nil {
					t.Errorf("Release: %v", err)
				}
			})
			all.Wait()
			next := locktest.MustTry(t, other, "x")
			if err := next.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
