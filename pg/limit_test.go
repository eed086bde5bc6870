package pg_test

import (
	"net/url"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestALockerKeepsToItsLimits(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Limits(t, func(t *testing.T, n int) locktest.Locker {
		t.Helper()
		return newLocker(t, db, pg.WithMaxConnections(n))
	}, func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) }, 600)
	for _, n := range []int{-1, 0, 1, 1001} {
		if _, err := pg.New(db.DSN, pg.WithMaxConnections(n)); err == nil {
			t.Errorf("WithMaxConnections(%d): no error", n)
		}
	}
}

func TestAServerWithoutAFreeConnectionIsErrLimit(t *testing.T) {
	t.Parallel()
	srv := sqltest.Start(t, sqltest.EnginePostgres)
	db := srv.Database(t)
	statement(t, db, "CREATE ROLE one_only LOGIN PASSWORD 'one' CONNECTION LIMIT 1")
	dsn, err := url.Parse(db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	dsn.User = url.UserPassword("one_only", "one")
	first, second := closing(t)(pg.New(dsn.String())), closing(t)(pg.New(dsn.String()))
	locktest.MustWaitWithOneConnection(t, newLocker(t, db), first)
	locktest.MustBeFull(t, second)
}
