package pg_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/internal/oddserver"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func mustRefuseTx(t *testing.T, tx pg.Tx, seen string) {
	t.Helper()
	for name, lock := range everyLockTx {
		err := lock(t.Context(), tx, "a")
		var refused *refusal.Error
		if !errors.Is(err, sqllock.ErrRefused) || !errors.As(err, &refused) {
			t.Fatalf("%s = %v; want a *refusal.Error", name, err)
		}
		if !strings.Contains(refused.Seen, seen) || refused.Instead == "" {
			t.Errorf("%s says %q", name, refused)
		}
		if passes := seen == "standby"; sqllock.IsRetryable(err) != passes || errors.Is(err, sqllock.ErrReadOnly) != passes {
			t.Errorf("%s: IsRetryable(%v) = %t; it is ErrReadOnly: %t", name, err, !passes, errors.Is(err, sqllock.ErrReadOnly))
		}
	}
}

func TestATransactionThatFailedIsRefusedUntilItIsRolledBack(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		tx.must(t, "SAVEPOINT here")
		if err := tx.exec("SELECT 1/0"); err == nil {
			t.Fatal("no error")
		}
		mustRefuseTx(t, tx, "has failed")
		if n := locksOn(t, db); n != 0 {
			t.Errorf("%d locks are held after a refusal", n)
		}
		tx.must(t, "ROLLBACK TO here")
		mustLockTx(t, tx, "a")
	})
}

func TestATransactionEndedByHandIsRefused(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, db *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		tx.must(t, "COMMIT")
		mustRefuseTx(t, tx, "not in a transaction")
		if n := locksOn(t, db); n != 0 {
			t.Errorf("%d locks are held after a refusal", n)
		}
	})
}

func TestATransactionThatIsOverGivesItsDriversError(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, _ *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		for name, lock := range everyLockTx {
			if err := lock(t.Context(), tx, "a"); !errors.Is(err, pgx.ErrTxClosed) && !errors.Is(err, sql.ErrTxDone) {
				t.Errorf("%s = %v", name, err)
			}
		}
	})
}

func TestWithoutATransactionTheErrorSaysWhatToPass(t *testing.T) {
	t.Parallel()
	for name, lock := range everyLockTx {
		if err := lock(t.Context(), nil, "a"); err == nil || !strings.Contains(err.Error(), "pass the pgx.Tx") {
			t.Errorf("%s = %v", name, err)
		}
	}
}

func TestATransactionOfAnotherDriverTakesNoLock(t *testing.T) {
	t.Parallel()
	tx, err := sqltest.SQLite(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for name, lock := range everyLockTx {
		if err := lock(t.Context(), pg.SQLTx(tx), "a"); err == nil || !strings.Contains(err.Error(), "pgx/v5/stdlib") {
			t.Errorf("%s = %v; the error should name the driver that is needed", name, err)
		}
	}
	if _, err := tx.ExecContext(t.Context(), "SELECT 1"); err != nil {
		t.Errorf("the transaction is over: %v", err)
	}
}

// interpolating is a transaction that sends no arguments, as bun's.
type interpolating struct{ *sqlx.Tx }

func (tx interpolating) QueryContext(ctx context.Context, query string, _ ...any) (*sql.Rows, error) {
	return tx.Tx.QueryContext(ctx, strings.NewReplacer("$1", "1", "$2", "2").Replace(query))
}

// pgx is then not asked, so it is not known whether the connection would have been refused.
func TestATransactionThatReplacesArgumentsIsAnError(t *testing.T) {
	t.Parallel()
	tx := pg.SQLTx(interpolating{beginTx(t, sqltest.Postgres(t))})
	for name, lock := range everyLockTx {
		if err := lock(t.Context(), tx, "a"); err == nil || !strings.Contains(err.Error(), "arguments") {
			t.Errorf("%s = %v", name, err)
		}
	}
}

// startStandby starts a standby for this test.
func startStandby(t *testing.T) (db *sqltest.Database, promote func()) {
	t.Helper()
	server := sqltest.Start(t, sqltest.EnginePostgres)
	db = server.Database(t)
	return db, oddserver.MakeStandby(t, server, db)
}

// I49.
func TestAStandbyIsRefused(t *testing.T) {
	t.Parallel()
	db, promote := startStandby(t)
	_, err := newLocker(t, db).TryAcquire(t.Context(), "a")
	var refused *refusal.Error
	if !errors.As(err, &refused) || !strings.Contains(refused.Seen, "standby") || refused.Instead == "" {
		t.Errorf("TryAcquire: %v", err)
	}
	if n := locksOn(t, db); n != 0 {
		t.Errorf("%d locks are held after a refusal", n)
	}
	for _, tx := range []transaction{begin(t, db.DSN), beginSQL(t, db)} {
		mustRefuseTx(t, tx, "standby")
		if n := locksOn(t, db); n != 0 {
			t.Errorf("%d locks are held after a refusal", n)
		}
		tx.must(t, "SELECT 1")
	}
	locktest.OutlastsReadOnly(t, database{db}, promote)
}

func TestATransactionOnCockroachDBIsRefused(t *testing.T) {
	t.Parallel()
	mustRefuseTx(t, begin(t, startFakeCockroach(t)), "CockroachDB")
}

// startFakeCockroach starts a fake server that begins and ends transactions, and identifies itself as CockroachDB at
// the beginning of a connection, as the real one does. It answers nothing else.
func startFakeCockroach(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_ = listener.Close()
		backend := pgproto3.NewBackend(c, c)
		if _, err := backend.ReceiveStartupMessage(); err != nil {
			return
		}
		backend.Send(&pgproto3.AuthenticationOk{})
		backend.Send(&pgproto3.ParameterStatus{Name: "crdb_version", Value: "CockroachDB CCL v24.1.0"})
		backend.Send(&pgproto3.BackendKeyData{ProcessID: backendPID, SecretKey: binary.BigEndian.AppendUint32(nil, 1)})
		backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
		for backend.Flush() == nil {
			msg, err := backend.Receive()
			if err != nil {
				return
			}
			switch q, _ := msg.(*pgproto3.Query); {
			case q != nil && q.String == "begin":
				backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("BEGIN")})
				backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'T'})
			case q != nil && q.String == "rollback":
				backend.Send(&pgproto3.CommandComplete{CommandTag: []byte("ROLLBACK")})
				backend.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
			default:
				return // the end, or a statement that must not reach a refused server
			}
		}
	}()
	return fmt.Sprintf("postgres://anybody@%s/any?sslmode=disable", listener.Addr())
}

func TestATransactionLockHasNoTimeToWait(t *testing.T) {
	t.Parallel()
	onEveryDriver(t, func(t *testing.T, _ *sqltest.Database, begin func(*testing.T) transaction) {
		tx := begin(t)
		for name, lock := range everyLockTx {
			err := lock(t.Context(), tx, "a", sqllock.WithWait(time.Second))
			if strings.HasPrefix(name, "Try") { // it does not wait, as TryAcquire
				if err != nil {
					t.Errorf("%s = %v", name, err)
				}
			} else if !errors.Is(err, sqllock.ErrUnsupported) || !strings.Contains(err.Error(), "lock_timeout") {
				t.Errorf("%s = %v", name, err)
			}
			if err := lock(t.Context(), tx, "a", sqllock.WithWait(-time.Second)); err == nil {
				t.Errorf("%s accepts a negative wait", name)
			}
		}
	})
}
