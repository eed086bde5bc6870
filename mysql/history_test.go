package mysql_test

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// historyJob is a job of child processes.
const historyJob = "history"

const historyTTL = 3 * time.Second

func TestNoLockIsHeldTwiceWhateverHappensToItsHolders(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		opts := contenders(t, db)
		opts.Kills, opts.Stops, opts.Cuts, opts.Terminations = 3, 2, 1, 3
		history.Run(t, newLocker(t, db), opts, porcupine.Ok)
	})
}

// Connections are not ended in this test. A handoff between goroutines uses no statement, and so relies on what the
// Locker knows about the connection. I40, I45.
func TestNoLockIsHeldTwiceWhereGoroutinesHandItOver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		opts := contenders(t, db)
		opts.Workers = 3
		opts.Kills, opts.Stops, opts.Cuts = 2, 1, 1
		history.Run(t, newLocker(t, db), opts, porcupine.Ok)
	})
}

func contenders(t *testing.T, db *sqltest.Database) history.Options {
	t.Helper()
	database := database{db}
	return history.Options{
		Server: database.Access(t).Address,
		Child: func(address string) []string {
			return childEnv(database.DSN(t, locktest.Access{Address: address}), historyTTL, historyJob)
		},
		TTL: historyTTL, Processes: 4, Workers: 1, Names: []string{"a", "b"},
	}
}
