package pg_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestDeadlines(t *testing.T) {
	t.Parallel()
	locktest.Deadlines(t, func(t *testing.T) locktest.Answered {
		db := sqltest.Postgres(t)
		return locktest.Answered{
			Server: parse(t, db.DSN).Host,
			NewLocker: func(t *testing.T, address string, ttl time.Duration) locktest.Locker {
				t.Helper()
				return closing(t)(pg.New(at(t, db, address), pg.WithSessionTTL(ttl)))
			},
			Ask:  "\x00sqllock_try\x00", // as in a Bind
			Ping: "SELECT pg_is_in_recovery(), pg_backend_pid()",
		}
	})
}
