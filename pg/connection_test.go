package pg_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestLocksThatWereFreeShareOneConnection(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	l := newLocker(t, db)
	if n := sessionsOn(t, db); n != 0 {
		t.Fatalf("%d connections before the first lock", n)
	}
	var locks []sqllock.Lock
	for i := range 50 {
		locks = append(locks, mustTry(t, l, fmt.Sprint("lock ", i)))
	}
	if n := sessionsOn(t, db); n != 1 {
		t.Errorf("%d connections for 50 locks that were free", n)
	}
	for _, lock := range locks {
		mustRelease(t, lock)
	}
}

func TestAWaitHasAConnectionUntilItsLockIsReleased(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	holder, l := newLocker(t, db), newLocker(t, db)
	lock, other := mustTry(t, holder, "a"), mustTry(t, l, "other")
	ctx, cancel := bounded(t)
	defer cancel()
	waiting := waitFor(ctx, t, db, l, "a")
	if n := sessionsOn(t, db); n != 3 {
		t.Errorf("%d connections; want one for the holder's locks, one for the waiter's, one for its wait", n)
	}
	inLine := make(chan outcome, 1)
	go func() {
		lock, err := l.Acquire(ctx, "a")
		inLine <- outcome{lock, err}
	}()
	mustRelease(t, lock)
	for range 2 { // in whichever order they came to wait
		var out outcome
		select {
		case out = <-waiting:
		case out = <-inLine:
		}
		if out.err != nil {
			t.Fatal(out.err)
		}
		mustRelease(t, out.lock)
	}
	eventually(t, "the wait's connection is closed", func() bool { return sessionsOn(t, db) == 2 })
	mustLive(t, other)
	mustRelease(t, other)
}

func TestAPoolOfOneKeepsWorkingWhileLocksAreHeldAndWaitedFor(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	small, err := sql.Open("pgx", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer small.Close()
	small.SetMaxOpenConns(1)
	holder := newLocker(t, db)
	l := closing(t)(pg.FromDB(small))
	lock, own := mustTry(t, holder, "a"), mustTry(t, l, "own")
	ctx, cancel := bounded(t)
	defer cancel()
	waiting := waitFor(ctx, t, db, l, "a")
	for range 10 {
		var one int
		if err := small.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
			t.Fatal(err)
		}
	}
	mustRelease(t, own) // the wait does not stand in the way of a release either
	mustRelease(t, lock)
	out := <-waiting
	if out.err != nil {
		t.Fatal(out.err)
	}
	mustRelease(t, out.lock)
	if n := small.Stats().OpenConnections; n > 1 {
		t.Errorf("the pool has %d connections", n)
	}
	if err := small.PingContext(ctx); err != nil {
		t.Errorf("the pool was closed: %v", err)
	}
}

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
		if n := ask[int](t, db, "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", "sqllock/"+test.shown); n != 1 {
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
		seen, isHeld, err := other.Inspect(t.Context(), test.owner+" ")
		if err != nil || !isHeld || seen != h {
			t.Errorf("Inspect = %+v, %t, %v; the failed try said %+v", seen, isHeld, err, h)
		}
		mustRelease(t, lock)
		if _, isHeld, err := other.Inspect(t.Context(), test.owner+" "); err != nil || isHeld {
			t.Errorf("Inspect of a free lock: %t, %v", isHeld, err)
		}
	}
}

func TestALockOfAnotherDatabaseIsAnotherLock(t *testing.T) {
	t.Parallel()
	one, two := newLocker(t, sqltest.Postgres(t)), newLocker(t, sqltest.Postgres(t))
	first := mustTry(t, one, "a")
	mustBeHeld(t, one, "a")
	mustRelease(t, mustTry(t, two, "a"))
	mustRelease(t, first)
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

func TestAPreparedTransactionCannotBeTerminated(t *testing.T) {
	t.Parallel()
	db := sqltest.Start(t, sqltest.EnginePostgres, "max_prepared_transactions=1").Database(t)
	statement(t, db, "BEGIN; SELECT pg_advisory_xact_lock("+strconv.FormatInt(pg.Key("a"), 10)+"); PREPARE TRANSACTION 'it'")
	l := newLocker(t, db)
	mustBeHeld(t, l, "a")
	if _, ended, err := l.Terminate(t.Context(), "a"); ended || err == nil || !strings.Contains(err.Error(), "ROLLBACK PREPARED") {
		t.Errorf("Terminate: %t, %v", ended, err)
	}
	statement(t, db, "ROLLBACK PREPARED 'it'")
	mustRelease(t, mustTry(t, l, "a"))
}
