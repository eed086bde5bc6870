package pg_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// A process is stopped, for longer than the session TTL, between the grant of a lock and the response. Nobody has that
// lock: one goroutine acquires it anew, and no second one besides.
func TestAStallBetweenGrantAndAnswerLetsOneIn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	locktest.NeedSessionTimeout(t, db.DB.DB)
	network := db.Network(t)
	held := network.HoldAnswer("\x00sqllock_try\x00") // as in a Bind message, not as in the Parse message of the setup
	child := startProcess(t, network.DSN, 6*time.Second, "race")
	select {
	case <-held.Asked():
	case <-time.After(soon):
		t.Fatal("the process did not ask for the lock")
	}
	child.signal(t, syscall.SIGSTOP)
	held.Pass()
	eventually(t, "the server gives up the session", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'sqllock/child' AND datname = current_database()") == 0
	})
	child.signal(t, syscall.SIGCONT)
	if got := child.line(); got != "taken once" {
		t.Errorf("the stopped process says: %s", got)
	}
}
