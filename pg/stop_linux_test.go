package pg_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// A process is stopped, for longer than the session TTL, after it has read the response that grants it a lock, and
// before it knows the response. I4.
func TestALockWhoseAnswerIsKnownTooLateIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	if dsn, is := locktest.StalledChild(); is {
		s := &locktest.Staller{}
		l := dialling(t, dsn, s.Dial, pg.WithSessionTTL(5*time.Second), pg.WithOwner("stalled"))
		locktest.ServeStalls(l, s, "\x00sqllock_try\x00") // as in a Bind message
		return
	}
	db := sqltest.Postgres(t)
	locktest.NeedSessionTimeout(t, db.DB.DB)
	locktest.Stalls(t, db.DSN, 2, func() bool {
		return ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqllock/stalled' AND datname = current_database()") == 0
	})
}
