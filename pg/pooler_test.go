package pg_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestLocksBehindAPoolerThatPoolsSessions(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	dsn := startBouncer(t, db, "session", "default_pool_size = 40")
	pooled := func() *pg.Locker {
		return closing(t)(pg.New(dsn, pg.WithSessionPooling(), pg.WithSessionTTL(time.Hour)))
	}
	a, b, direct := pooled(), pooled(), newLocker(t, db)

	lock := mustTry(t, a, "it")
	mustBeHeld(t, b, "it")
	mustBeHeld(t, direct, "it")
	ctx, cancel := bounded(t)
	defer cancel()
	next := waitFor(ctx, t, db, b, "it")
	mustRelease(t, lock)
	out := <-next
	if out.err != nil {
		t.Fatal(out.err)
	}
	mustBeHeld(t, direct, "it")

	terminate(t, db, "it")
	mustBeLost(t, out.lock)
	mustAcquire(t, b, "it")
	if err := b.Close(); err != nil { // this returns its session to the pooler
		t.Fatal(err)
	}
	mustRelease(t, mustAcquire(t, direct, "it"))
}

func TestTheLockOfAClientThatDiesBehindAPoolerIsFreed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	locktest.NeedSessionTimeout(t, db.DB.DB)
	dsn := startBouncer(t, db, "session")
	network := (&sqltest.Database{Engine: db.Engine, DSN: dsn}).Network(t)
	holder := closing(t)(pg.New(network.DSN, pg.WithSessionPooling(), pg.WithSessionTTL(3*time.Second)))
	lock := mustAcquire(t, holder, "it") // a session that takes too long to open is opened again
	network.Cut()                        // the pooler receives nothing more, not even the end of the connection
	mustBeLost(t, lock)
	mustRelease(t, mustAcquire(t, newLocker(t, db), "it"))
}

// The option WithSessionPooling alone is not enough: the Locker checks the pooler. I49.
func TestAPoolerThatDoesNotPoolSessionsIsRefusedAllTheSame(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for name, test := range map[string]struct {
		mode     string
		settings []string
		sessions int // number of sessions that the pooler has open by then
		seen     string
	}{
		"transactions":           {"transaction", nil, 0, "clients at the same time"},
		"transactions, one":      {"transaction", []string{"default_pool_size = 1"}, 1, "clients at the same time"},
		"transactions, in turn":  {"transaction", []string{"server_round_robin = 1"}, 5, "ran statements of one client in the sessions"},
		"statements":             {"statement", nil, 0, "clients at the same time"},
		"sessions, half a reset": {"session", []string{"server_reset_query = SELECT pg_advisory_unlock_all()"}, 0, "prepared statements"},
		"sessions, but no reset": {"session", []string{"server_reset_query ="}, 0, "keeps the locks of a client that has left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := sqltest.Postgres(t)
			dsn := startBouncer(t, db, test.mode, test.settings...)
			openSessions(t, dsn, test.sessions)
			l := closing(t)(pg.New(dsn, pg.WithSessionPooling()))
			_, err := l.TryAcquire(t.Context(), "a")
			// The pooler has two sessions, and one of the next two clients gets the session of this one.
			if test.seen == "prepared statements" {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				for i := 0; i < 2 && err == nil; i++ {
					l = closing(t)(pg.New(dsn, pg.WithSessionPooling()))
					_, err = l.TryAcquire(t.Context(), fmt.Sprint("b", i))
				}
			}
			var refused *refusal.Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Seen, test.seen) || refused.Instead == "" {
				t.Fatalf("the error is %v", err)
			}
		})
	}
}

// openSessions makes a transaction pooler open n sessions.
func openSessions(t *testing.T, dsn string, n int) {
	t.Helper()
	for range n {
		client, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close(t.Context())
		if _, err := client.Exec(t.Context(), "BEGIN"); err != nil { // until the client leaves
			t.Fatal(err)
		}
		defer client.Exec(t.Context(), "COMMIT") //nolint:errcheck // returns the session to the pooler
	}
}

// A Locker that declares a session pooler opens a second connection for a moment, to see that the pooler is one.
func TestTroubleWithTheConnectionThatLooksAtAPoolerPasses(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	for trouble, fails := range map[string]func(*pgxpool.Config, func() bool){
		"it cannot be opened": func(config *pgxpool.Config, now func() bool) {
			config.BeforeConnect = func(context.Context, *pgx.ConnConfig) error {
				if now() {
					return errors.New("connection refused")
				}
				return nil
			}
		},
		"it breaks": func(config *pgxpool.Config, now func() bool) {
			config.AfterConnect = func(_ context.Context, pc *pgx.Conn) error {
				if now() {
					return pc.PgConn().Conn().Close()
				}
				return nil
			}
		},
	} {
		config, err := pgxpool.ParseConfig(db.DSN)
		if err != nil {
			t.Fatal(err)
		}
		var opened atomic.Int64
		fails(config, func() bool { return opened.Add(1)%4 == 2 })
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		l := closing(t)(pg.FromPool(pool, pg.WithSessionPooling(), pg.WithSessionTTL(time.Hour)))
		if _, err := l.TryAcquire(t.Context(), trouble); !sqllock.IsRetryable(err) {
			t.Errorf("%s: TryAcquire: %v", trouble, err)
		}
		lock, err := l.Acquire(t.Context(), trouble)
		if err != nil {
			t.Fatalf("%s: Acquire: %v", trouble, err)
		}
		mustRelease(t, lock)
	}
}
