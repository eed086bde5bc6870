package pg_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestConnectionsAndHoldersAreKnownByTheOwnersName(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	for _, test := range []struct{ owner, shown string }{
		{"billing", "billing"},
		{"a'b\\c \"d\"", "a'b\\c \"d\""},
		{"nul\x00and\xffmore", "nul?and?more"},
	} {
		l, other := newLocker(t, db, pg.WithOwner(test.owner)), newLocker(t, db)
		lock := mustTry(t, l, test.owner+" ")
		if n := ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND datname = current_database()", "sqllock/"+test.shown); n != 1 {
			t.Errorf("owner %q: %d connections have the name %q", test.owner, n, "sqllock/"+test.shown)
		}
		_, err := other.TryAcquire(t.Context(), test.owner+" ")
		var held *sqllock.HeldError
		if !errors.As(err, &held) {
			t.Fatal(err)
		}
		h := held.Holder
		if h.Owner != test.shown || h.Session != int64(holderOf(t, db, test.owner+" ")) || h.Since.IsZero() || h.Address == "" {
			t.Errorf("the holder is %+v", h)
		}
		info, err := other.Inspect(t.Context(), test.owner+" ")
		if err != nil || !info.Held || info.Holder != h {
			t.Errorf("Inspect = %+v, %v; the failed try said %+v", info, err, h)
		}
		mustRelease(t, lock)
		if info, err := other.Inspect(t.Context(), test.owner+" "); err != nil || info.Held {
			t.Errorf("Inspect of a free lock: %+v, %v", info, err)
		}
	}
}

func TestASessionThatEndsSaysGoodbye(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	mustTry(t, l, "a")
	pid := holderOf(t, db, "a")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the session has ended", func() bool {
		return ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid) == 0
	})
	abandoned := ask[int](t, db, "SELECT coalesce((to_jsonb(d)->>'sessions_abandoned')::int, 0) FROM pg_stat_database d WHERE datname = current_database()")
	if abandoned != 0 { // PostgreSQL 12 and 13 do not count them
		t.Errorf("the server counts %d abandoned sessions", abandoned)
	}
}

// The first host accepts connections and says nothing, like a frozen machine.
func TestSeveralHostsOfAStringShareTheTimeToConnect(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	frozen, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	l := closing(t)(pg.New(strings.Replace(db.DSN, "@", "@"+frozen.Addr().String()+",", 1), pg.WithSessionTTL(time.Hour)))
	mustRelease(t, mustTry(t, l, "a"))
}

func TestAWaitEndsWithARefusedCertificate(t *testing.T) {
	t.Parallel()
	locktest.EndsWithARefusedCertificate(t, func(dsn string) (locktest.Locker, error) { return pg.New(dsn, pg.WithLogger(nil)) })
}

func TestConnectionsThatSendCancelRequestsAreAnError(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(sqltest.Postgres(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	config.BuildContextWatcherHandler = func(pc *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: pc, DeadlineDelay: time.Hour}
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	_, err = closing(t)(pg.FromDB(db)).TryAcquire(t.Context(), "a")
	if err == nil || !strings.Contains(err.Error(), "CancelRequestContextWatcherHandler") {
		t.Errorf("the error is %v", err)
	}
}

// logged is a connector of a library that wraps pgx's connections, and names pgx's driver as its own.
type logged struct{ driver.Connector }

type loggedConn struct{ driver.Conn }

func (l logged) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := l.Connector.Connect(ctx)
	return loggedConn{dc}, err
}

func TestConnectionsThatWrapPgxAreAnErrorWhichEndsAWait(t *testing.T) {
	t.Parallel()
	config, err := pgx.ParseConfig(sqltest.Postgres(t).DSN)
	if err != nil {
		t.Fatal(err)
	}
	l := closing(t)(pg.FromConnector(logged{stdlib.GetConnector(*config)}))
	_, err = l.TryAcquire(t.Context(), "a")
	if !errors.Is(err, sqllock.ErrUnsupported) || sqllock.IsRetryable(err) || !strings.Contains(err.Error(), "loggedConn") {
		t.Errorf("retryable: %t; %v", sqllock.IsRetryable(err), err)
	}
}
