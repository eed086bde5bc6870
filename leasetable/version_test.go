package leasetable_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// A program that was not upgraded, and does not call schema.Check, must not change the tables by an older protocol.
func TestTablesThatTakeALaterProgramAreRefused(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		later := schema.Version + 1
		run(t, db, fmt.Sprintf("INSERT INTO sqllock_version (version, lowest) VALUES (%d, %d)", later, schema.Version))
		release(t, take(t, newLocker(t, db.DB), "x"))
		run(t, db, fmt.Sprintf("UPDATE sqllock_version SET lowest = %d WHERE version = %d", later, later))
		for _, change := range []func() error{
			func() error { _, err := newLocker(t, db.DB).TryAcquire(t.Context(), "x"); return err },
			func() error { _, err := newLocker(t, db.DB).Acquire(t.Context(), "x"); return err }, // does not wait for it
			func() error { _, err := newLocker(t, db.DB).ForceRelease(t.Context(), "x"); return err },
			func() error { _, err := newLocker(t, db.DB).Purge(t.Context(), 0); return err },
		} {
			if err := change(); !errors.Is(err, sqllock.ErrSchema) || sqllock.IsRetryable(err) {
				t.Errorf("the error is %v", err)
			}
		}
		if n := count(t, db, "SELECT count(*) FROM sqllock_lock WHERE token > 1"); n != 0 {
			t.Error("the name was taken")
		}
	})
}
