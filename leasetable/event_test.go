package leasetable_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

func TestWhatHappensToLocksIsTold(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		locktest.Events(t, func(t *testing.T, hook func(context.Context, sqllock.Event), logger *slog.Logger) locktest.Locker {
			t.Helper()
			return ofAnyKind(newLocker(t, db.DB, leasetable.WithHook(hook), leasetable.WithLogger(logger), leasetable.WithTTL(survivingTTL)))
		}, locktest.Options{Kind: "lease", Lose: func(t *testing.T, name string) { t.Helper(); expireLease(t, db, name) }})
	})
}
