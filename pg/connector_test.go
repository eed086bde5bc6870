package pg_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// hooked returns a pool that connects to db with hooks.
func hooked(t *testing.T, db *sqltest.Database, hook func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	hook(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// As with pgxpool.
func TestEachConnectionOfAConnectorHasAConfigurationOfItsOwn(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	c := pg.Connector(hooked(t, sqltest.Postgres(t), func(config *pgxpool.Config) {
		config.BeforeConnect = func(_ context.Context, cc *pgx.ConnConfig) error {
			cc.RuntimeParams["application_name"] += "x"
			if name := cc.RuntimeParams["application_name"]; name != "x" {
				t.Errorf("the name is %q", name)
			}
			return nil
		}
	}))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			dc, err := c.Connect(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			_ = dc.Close() // the server is another's
		})
	}
	all.Wait()
}

func TestAConnectorLeavesNoConnectionWhoseHookFailed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	errHook := errors.New("the hook failed")
	var last *pgx.Conn
	c := pg.Connector(hooked(t, sqltest.Postgres(t), func(config *pgxpool.Config) {
		config.AfterConnect = func(_ context.Context, pc *pgx.Conn) error {
			last = pc
			return errHook
		}
	}))
	if _, err := c.Connect(t.Context()); !errors.Is(err, errHook) {
		t.Errorf("Connect: %v", err)
	}
	if last == nil || !last.IsClosed() {
		t.Error("the connection is open")
	}
}
