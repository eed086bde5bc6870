package leasetable_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// Behind a pooler that gives every transaction another session nothing is different.
func TestLeasesWorkBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	dsn := locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 2")
	pooled := open(t, "pgx", dsn+"&default_query_exec_mode=exec")
	holder := newLocker(t, pooled, leasetable.WithTTL(survivingTTL))
	waiter, direct := newLocker(t, pooled), newLocker(t, db.DB)

	lease := take(t, holder, "x")
	taken := make(chan *leasetable.Lease, 1)
	go func() { taken <- take(t, waiter, "x") }()
	// Renewals outlast the TTL.
	eventually(t, func() bool { return count(t, db, "SELECT max(renewals) FROM sqllock_lease") >= 4 })
	mustBeHeld(t, direct, "x")
	if leasetable.Hears(waiter) { // a session that listens would be another client's the next moment
		t.Error("somebody listens behind a pooler")
	}
	tx, err := pooled.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Commit(), lease.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	next := <-taken
	if next.Token() != 2 {
		t.Errorf("the next holder has token %d", next.Token())
	}

	forced := take(t, holder, "y")
	if was, err := direct.ForceRelease(t.Context(), "y"); err != nil || !was.Held {
		t.Fatal(was, err)
	}
	if cause := await(t, forced, time.Minute); !errors.Is(cause, sqllock.ErrLost) {
		t.Errorf("the holder was told %v", cause)
	}
	takeAll(t, holder, "all", 100)
}
