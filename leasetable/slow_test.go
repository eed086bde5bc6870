package leasetable_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// newFar opens a Locker on a slow network.
func newFar(t *testing.T, db *sqltest.Database, n *locktest.SlowNetwork, opts ...leasetable.Option) *leasetable.Locker {
	t.Helper()
	return newLocker(t, open(t, db.DriverName(), strings.Replace(db.DSN, addressOf(db), n.Address(), 1)), opts...)
}

func TestLeasesWorkOnASlowNetwork(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		locktest.OnSlowNetworks(t, addressOf(db), func(t *testing.T, n *locktest.SlowNetwork) {
			locktest.SlowLocks(t, ofAnyKind(newFar(t, db, n)), ofAnyKind(newFar(t, db, n)), ofAnyKind(newLocker(t, db.DB)))
		})
	})
}

// The TTL is twice the minimum that survives this, because the machine may be busy: see the package documentation.
func TestALeaseSurvivesTheEndOfAllConnectionsOnASlowNetwork(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		locktest.OnSlowNetworks(t, addressOf(db), func(t *testing.T, n *locktest.SlowNetwork) {
			l := newFar(t, db, n, leasetable.WithTTL(max(survivingTTL, 60*n.RoundTrip)))
			lock := take(t, l, t.Name())
			eventually(t, func() bool { return lock.Context().Err() != nil || leasetable.Renewing(l) })
			n.Disconnect() // when a renewal is due
			left := lock.Remaining()
			eventually(t, func() bool { return lock.Context().Err() != nil || lock.Remaining() > left })
			if err := lock.Context().Err(); err != nil {
				t.Fatal(await(t, lock))
			}
			_ = lock.Release(t.Context()) // a new connection can take longer than a release waits for its confirmation
			next, err := newLocker(t, db.DB).Acquire(t.Context(), t.Name())
			if err != nil {
				t.Fatal(err)
			}
			release(t, next)
		})
	})
}

// A response takes longer than a quarter of the TTL. That leaves less than a second of tolerance for a busy machine.
func TestALeaseIsRenewedOnASlowNetwork(t *testing.T) {
	t.Parallel()
	if !locktest.Long() {
		t.Skip("for make soak")
	}
	locktest.OncePerEngine(t)
	onServers(t, func(t *testing.T, db *sqltest.Database) {
		n := locktest.NewSlowNetwork(t, addressOf(db), 800*time.Millisecond)
		lock := take(t, newFar(t, db, n, leasetable.WithTTL(6200*time.Millisecond)), t.Name())
		left := lock.Remaining()
		eventually(t, func() bool { return lock.Context().Err() != nil || lock.Remaining() > left })
		if err := lock.Context().Err(); err != nil {
			t.Fatal(await(t, lock))
		}
		release(t, lock)
	})
}
