package mysql_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// A process is stopped, for longer than the session TTL, after it has read the response that grants it a lock, and
// before it knows the response. I4.
func TestALockWhoseAnswerIsKnownTooLateIsNotGiven(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	if dsn, is := locktest.StalledChild(); is {
		s := &locktest.Staller{}
		l := dialling(t, dsn, s.Dial, mysql.WithSessionTTL(5*time.Second))
		locktest.ServeStalls(l, s, mysql.ServerName(parse(t, dsn).DBName, "stalled"))
		return
	}
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		locktest.Stalls(t, db.DSN, 2, func() bool { return sessionsOn(t, db) == 0 })
	})
}
