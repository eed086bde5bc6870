package pg_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestWhatHappensToLocksIsTold(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]sqllock.Option{"alone": nil, "shared": {pg.WithShared()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			locktest.Events(t, func(t *testing.T, hook func(sqllock.Event), logger *slog.Logger) locktest.Locker {
				t.Helper()
				l := newLocker(t, db, pg.WithHook(hook), pg.WithLogger(logger), pg.WithSessionTTL(5*time.Second))
				if hook == nil || opts == nil {
					return l
				}
				return optioned{l, func(string) sqllock.Option { return opts[0] }}
			}, options(db))
		})
	}
}
