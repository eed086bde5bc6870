package pg_test

import (
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/netfault"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// The answer to the statements that a new session prepares is lost: the caller is told, and the next call has a session
// on which all of them can run.
func TestASessionIsNotUsedIfTheAnswerToItsPreparedStatementsIsLost(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	own := database{db}
	network := netfault.New(t, netfault.TCP(own.Access(t).Address), netfault.Bytes)
	l := closing(t)(pg.New(own.DSN(t, locktest.Access{Address: network.Address()}), pg.WithMaxConnections(2)))
	lost := network.DropAnswer("sqllock_wait_end")
	if lock, err := l.TryAcquire(t.Context(), "it"); !sqllock.IsRetryable(err) {
		t.Fatalf("without an answer: %v, %v", lock, err)
	}
	select {
	case <-lost.Answered():
	default:
		t.Error("no statement was prepared")
	}
	eventually(t, "the session ends", func() bool { return sessionsOn(t, db) == 0 })
	mustRelease(t, mustTry(t, l, "it"))
}
