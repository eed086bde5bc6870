package pg_test

import (
	"context"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Jobs of child processes.
const (
	historyJob       = "history"
	pooledHistoryJob = "pooled history" // with a Locker that accepts a pooler
)

const historyTTL = 3 * time.Second

func TestNoLockIsHeldTwiceWhateverHappensToItsHolders(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	opts := contenders(t, db.DSN, historyJob)
	opts.Kills, opts.Stops, opts.Cuts, opts.Terminations = 3, 2, 2, 3
	history.Run(t, newLocker(t, db), opts, porcupine.Ok)
}

// Connections are not ended in this test. A handoff between goroutines uses no statement, and so relies on what the
// Locker knows about the connection. I40, I45.
func TestNoLockIsHeldTwiceWhereGoroutinesHandItOver(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	opts := contenders(t, db.DSN, historyJob)
	opts.Workers = 3
	opts.Kills, opts.Stops, opts.Cuts = 2, 2, 1
	history.Run(t, newLocker(t, db), opts, porcupine.Ok)
}

// This is what a transaction pooler does to session locks if it is not refused. It shows that the check can fail.
func TestBehindAPoolerThatIsNotRefusedALockIsHeldTwice(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	opts := contenders(t, startBouncer(t, db, "transaction", "default_pool_size = 1"), pooledHistoryJob)
	opts.Processes = 2 // each process that sets up its session there disturbs the others
	history.Run(t, newLocker(t, db), opts, porcupine.Illegal)
}

func contenders(t *testing.T, dsn, job string) history.Options {
	t.Helper()
	server := parse(t, dsn)
	return history.Options{
		Server: server.Host,
		Child: func(address string) []string {
			through := *server
			through.Host = address
			return childEnv(through.String(), historyTTL, job)
		},
		TTL: historyTTL, Processes: 4, Workers: 1, Names: []string{"a", "b"},
	}
}

// unguarded returns a Locker that treats a pooler as a server. All Lockers share one session there, so prepared
// statements are replaced by those of the next Locker.
func unguarded(dsn string, opts ...pg.Option) (*pg.Locker, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.AfterConnect = func(ctx context.Context, pc *pgx.Conn) error {
		_, err := pc.PgConn().Exec(ctx, "DEALLOCATE ALL").ReadAll()
		return err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config) // does not connect
	if err != nil {
		return nil, err
	}
	return pg.FromPool(pool, append(opts, pg.WithoutRefusals())...)
}
