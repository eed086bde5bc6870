package pg_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// I3.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	locktest.Deadlines(t, func(t *testing.T) locktest.Answered {
		db := sqltest.Postgres(t)
		return locktest.Answered{
			Server: parse(t, db.DSN).Host,
			NewLocker: func(t *testing.T, address string, ttl time.Duration) locktest.Locker {
				t.Helper()
				return closing(t)(pg.New(database{db}.DSN(t, locktest.Access{Address: address}), pg.WithSessionTTL(ttl)))
			},
			Dialling: func(t *testing.T, dial dialler, ttl time.Duration) locktest.Locker {
				t.Helper()
				return dialling(t, db.DSN, dial, pg.WithSessionTTL(ttl))
			},
			Ask:  "\x00sqllock_try\x00", // as in a Bind message
			Ping: "SELECT pg_is_in_recovery(), pg_backend_pid()",
		}
	})
}

type dialler = func(ctx context.Context, network, address string) (net.Conn, error)

// dialling opens a Locker whose connections are opened by dial.
func dialling(t *testing.T, dsn string, dial dialler, opts ...pg.Option) *pg.Locker {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc = dial
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return closing(t)(pg.FromPool(pool, opts...))
}
