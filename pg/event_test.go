package pg_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// This tests shared locks; locktest tests the events of exclusive locks on every server.
func TestWhatHappensToSharesIsTold(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	locktest.Events(t, func(t *testing.T, hook func(context.Context, sqllock.Event), logger *slog.Logger) locktest.Locker {
		t.Helper()
		l := newLocker(t, db, pg.WithHook(hook), pg.WithLogger(logger))
		if hook == nil { // the other Locker, which excludes it
			return l
		}
		return optioned{l, func(string) sqllock.Option { return pg.WithShared() }}
	}, options(db))
}
