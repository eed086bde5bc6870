package leasetable_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Each claim finds the lease expired, and one of them ends it for all. I9.
func TestNamesOfOneDeadHolderAreTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		const n = 8
		die := func(names ...string) {
			dead := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
			for _, name := range names {
				take(t, dead, name)
			}
			run(t, db, "UPDATE sqllock_lease SET expires_at = "+longAgo[db.Engine]+
				" WHERE id = (SELECT lease_id FROM sqllock_lock WHERE name = ?)", []byte(names[0]))
		}
		names, others := make([]string, n), make([]*leasetable.Locker, n)
		for i := range names {
			names[i], others[i] = fmt.Sprint("name ", i), newLocker(t, db.DB, leasetable.WithTTL(2*time.Hour))
			release(t, take(t, others[i], "connected"))
		}
		die(names...)
		together, err := others[0].TryAcquireAll(t.Context(), names)
		if err != nil {
			t.Fatal("together:", err)
		}
		release(t, together...)
		die(names...)
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				lock, err := locktest.TryFree(t.Context(), others[i], name)
				if err == nil {
					err = lock.Release(t.Context())
				}
				if err != nil {
					t.Error("each by another process:", err)
				}
			})
		}
		all.Wait()
	})
}

// The lease is ended once, and all its permits are cleared. I30, I33.
func TestThePermitsOfOneDeadHolderAreClearedAtOnce(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		dead := newLocker(t, db.DB, leasetable.WithTTL(time.Hour))
		share := take(t, dead, "x", leasetable.WithShared())
		for range 3 {
			take(t, dead, "x", leasetable.WithShared())
		}
		expire(t, db, share)
		alone := locktest.MustTry(t, newLocker(t, db.DB), "x")
		if n := count(t, db, "SELECT count(*) FROM sqllock_permit"); n != 0 {
			t.Errorf("%d permits are left", n)
		}
		mustVerify(t, alone)
		release(t, alone)
	})
}
