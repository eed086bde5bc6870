package pg_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// Both subtests fill the server, so they run one after the other. I43.
func TestAServerWithAFullTableOfLocks(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	srv := sqltest.Start(t, sqltest.EnginePostgres, sqltest.Setting("max_locks_per_transaction", "10"), sqltest.Setting("max_connections", "20"), sqltest.Setting("autovacuum", "off"))
	t.Run("is ErrLimit", func(t *testing.T) { isErrLimitWhenFull(t, srv.Database(t)) })  //nolint:paralleltest // see above
	t.Run("leaves nothing of a share that lacks room for its gate", func(t *testing.T) { //nolint:paralleltest // see above
		leavesNothingWhenFull(t, srv.Database(t))
	})
}

// A server whose lock table is full does not accept connections either.
func isErrLimitWhenFull(t *testing.T, db *sqltest.Database) {
	t.Helper()
	db.SetMaxOpenConns(1)
	mustHold(t, db, nil) // this connects
	l, other := newLocker(t, db), newLocker(t, db)
	mustRelease(t, mustTry(t, other, "a")) // this connects
	locks := []sqllock.Lock{mustTry(t, other, "theirs")}
	for {
		lock, err := l.TryAcquire(t.Context(), fmt.Sprint("lock ", len(locks)))
		if err != nil {
			mustBeFull(t, err)
			break
		}
		locks = append(locks, lock)
	}
	t.Logf("%d locks fill the server", len(locks))
	mustHold(t, db, locks)
	_, err := l.Acquire(t.Context(), "one more")
	mustBeFull(t, err)
	// Reading who holds a lock needs space in the lock table, too.
	if _, err := other.TryAcquire(t.Context(), locks[1].Name()); !errors.Is(err, sqllock.ErrHeld) {
		mustBeFull(t, err)
	}
	locktest.MustBeFull(t, newLocker(t, db)) // it cannot connect
	mustHold(t, db, locks)
	if info, err := l.Inspect(t.Context(), locks[1].Name()); err != nil || !info.Held || info.Holder.Session == 0 {
		t.Errorf("Inspect on a full server: %+v, %v", info, err)
	}
	if infos, err := l.List(t.Context()); err != nil || len(infos) != len(locks) {
		t.Errorf("List on a full server: %d locks, %v", len(infos), err)
	}
	if _, ended, err := l.Terminate(t.Context(), "theirs"); err != nil || !ended {
		t.Errorf("Terminate on a full server: %t, %v", ended, err)
	}
	mustBeLost(t, locks[0])
	locks = locks[1:]
	mustHold(t, db, locks)

	// In a batch some requests are refused, and every lock that was returned is held.
	const free = 10
	for _, lock := range locks[:free] {
		mustRelease(t, lock)
	}
	locks = locks[free:]
	type answer struct {
		lock sqllock.Lock
		err  error
	}
	answers := make(chan answer)
	for i := range 20 * free {
		go func() {
			lock, err := l.TryAcquire(t.Context(), fmt.Sprint("another ", i))
			answers <- answer{lock, err}
		}()
	}
	refused := 0
	for range 20 * free {
		a := <-answers
		if a.err != nil {
			mustBeFull(t, a.err)
			refused++
			continue
		}
		locks = append(locks, a.lock)
	}
	if refused == 0 {
		t.Error("nobody was refused")
	}
	mustHold(t, db, locks)

	for _, lock := range locks {
		mustRelease(t, lock)
	}
	mustHold(t, db, nil)
	mustRelease(t, mustAcquire(t, newLocker(t, db), "a"))
}

// An attempt to acquire a share needs space for its key and for the key of the gate. If there is space for only one of
// them, the attempt is refused and leaves neither: a gate held in shared mode would block every writer.
func leavesNothingWhenFull(t *testing.T, db *sqltest.Database) {
	t.Helper()
	db.SetMaxOpenConns(1)
	mustHold(t, db, nil) // this connects
	l, other := newLocker(t, db), newLocker(t, db)
	mustRelease(t, mustTry(t, l, "a")) // this connects
	var locks []sqllock.Lock
	for {
		lock, err := other.TryAcquire(t.Context(), fmt.Sprint("lock ", len(locks)))
		if err != nil {
			mustBeFull(t, err)
			break
		}
		locks = append(locks, lock)
	}
	mustRelease(t, locks[0])
	locks = locks[1:]
	for _, option := range []sqllock.Option{pg.WithKey(7), pg.WithPair(7, 7)} {
		_, err := l.TryAcquire(t.Context(), "it", option, pg.WithShared())
		mustBeFull(t, err)
		mustHold(t, db, locks)
		_, err = l.Acquire(t.Context(), "it", option, pg.WithShared())
		mustBeFull(t, err)
		mustHold(t, db, locks)
	}
}

// mustBeFull checks the error of a server whose lock table is full.
func mustBeFull(t *testing.T, err error) {
	t.Helper()
	var answer *pgconn.PgError
	if !errors.Is(err, sqllock.ErrLimit) || !sqllock.IsRetryable(err) || !errors.As(err, &answer) || answer.Code != "53200" {
		t.Fatalf("the error is %v; it should match ErrLimit, be retryable and have the code 53200", err)
	}
}

// mustHold checks that locks live, and that nothing else is held on the server. The query covers all databases: the
// name of this database is in a shared catalog, and reading a shared catalog needs space in the lock table.
func mustHold(t *testing.T, db *sqltest.Database, locks []sqllock.Lock) {
	t.Helper()
	for _, lock := range locks {
		mustLive(t, lock)
	}
	if n := ask[int](t, db, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"); n != len(locks) {
		t.Errorf("the server knows of %d locks; want %d", n, len(locks))
	}
}

func TestMoreLockersThanConnectionsAreServed(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	role := ask[string](t, db, "SELECT current_database()") // roles belong to the whole server
	statement(t, db, "CREATE ROLE "+role+" LOGIN PASSWORD 'one' CONNECTION LIMIT 4")
	t.Cleanup(func() { _, _ = db.Exec("DROP ROLE " + role) })
	dsn := database{db}.DSN(t, locktest.Access{User: role, Password: "one"})
	locktest.OneNameInCrowd(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		return closing(t)(pg.New(dsn))
	}, 6)
}

func TestAWaitWithoutAConnectionOfItsOwnPolls(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	role := ask[string](t, db, "SELECT current_database()") // roles belong to the whole server
	statement(t, db, "CREATE ROLE "+role+" LOGIN PASSWORD 'one' CONNECTION LIMIT 1")
	t.Cleanup(func() { _, _ = db.Exec("DROP ROLE " + role) })
	dsn := database{db}.DSN(t, locktest.Access{User: role, Password: "one"})
	locktest.MustWaitWithOneConnection(t, newLocker(t, db), closing(t)(pg.New(dsn)))
}
