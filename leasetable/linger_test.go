package leasetable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// No response was lost, which would cost the lease.
func TestALoneCallerWhoHasLeftSendsNothing(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		l := newLocker(t, db.DB)
		if unknown, err := leasetable.TakeTooLate(t.Context(), l, "x"); unknown || !errors.Is(err, context.Canceled) {
			t.Errorf("%v; it is unknown whether the name was taken: %v", err, unknown)
		}
	})
}

// Its statement is canceled, which is not a failure of the database.
func TestALoneCallerWhoLeavesIsToldThatItDid(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, db.DB)
	release(t, take(t, l, "x"))
	tx := db.MustBeginTx(t.Context(), nil)
	if _, err := tx.Exec("SELECT FROM sqllock_lock FOR UPDATE"); err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go func() {
		_, err := tryUntilAnswered(ctx, l)
		told <- err
	}()
	eventually(t, func() bool { return waitsForRow(t, db) })
	leave()
	if err := <-told; !errors.Is(err, context.Canceled) || sqllock.IsRetryable(err) {
		t.Errorf("TryAcquire = %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Error(err)
	}
	take(t, newLocker(t, db.DB), "x")
}
