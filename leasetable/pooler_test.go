package leasetable_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// Behind a pooler that gives every transaction another session, everything works as usual, and the URL needs no
// parameters.
func TestLeasesWorkBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	db := withTables(t, sqltest.Postgres(t))
	dsn := locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 2")
	pooled := open(t, "pgx", dsn)
	holder := newLocker(t, pooled, leasetable.WithTTL(survivingTTL))
	waiter, direct := newLocker(t, pooled), newLocker(t, db.DB)

	lease := take(t, holder, "x")
	taken := acquiring(waiter, "x")
	// Renewals continue beyond the TTL.
	eventually(t, func() bool { return count(t, db, "SELECT max(renewals) FROM sqllock_lease") >= 4 })
	mustBeHeld(t, direct, "x")
	if leasetable.HasTurn(waiter, "x") { // a session with a turn could serve another client at the next moment
		t.Error("somebody has a turn behind a pooler")
	}
	// The transaction belongs to the application, which must set this parameter itself.
	tx, err := open(t, "pgx", dsn+"&default_query_exec_mode=exec").BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lease.Guard(t.Context(), leasetable.SQLTx(tx)), tx.Commit(), lease.Release(t.Context())); err != nil {
		t.Fatal(err)
	}
	if token := mustGet(t, taken).Token(); token != 2 {
		t.Errorf("the next holder has token %d", token)
	}

	forced := take(t, holder, "y")
	if was, err := direct.ForceRelease(t.Context(), "y"); err != nil || !was.Held {
		t.Fatal(was, err)
	}
	if cause := await(t, forced); !errors.Is(cause, sqllock.ErrLost) {
		t.Errorf("the holder was told %v", cause)
	}
	takeAll(t, holder, "all", 100)
}

// The pooler alternates between its sessions, so that clients find the statements that other clients would have
// prepared.
func TestConformanceBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	dsn := locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 8", "server_round_robin = 1", "max_client_conn = 2000")
	conform(t, db, open(t, "pgx", dsn))
}

// misleading forwards connections to a pooler. It tells clients the process id of the session that serves them first,
// as PostgreSQL itself does. It does not support TLS.
func misleading(t *testing.T, pooler string) (dsn string) {
	t.Helper()
	config, err := pgx.ParseConfig(pooler)
	if err != nil {
		t.Fatal(err)
	}
	behind := net.JoinHostPort(config.Host, fmt.Sprint(config.Port))
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var pid uint32
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&pid); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close() // ends the accept loop
		running.Wait()
	})
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { passOn(client, behind, pid, &running) })
		}
	})
	return strings.Replace(pooler, behind, listener.Addr().String(), 1)
}

func passOn(client net.Conn, server string, pid uint32, running *sync.WaitGroup) {
	defer client.Close()
	behind, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", server)
	if err != nil {
		return
	}
	defer behind.Close()
	running.Go(func() {
		defer behind.Close()
		_, _ = io.Copy(behind, client) // until either side ends
	})
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(behind, header); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(header[1:])-4)
		if _, err := io.ReadFull(behind, body); err != nil {
			return
		}
		const backendKeyData = 'K'
		if header[0] == backendKeyData {
			binary.BigEndian.PutUint32(body, pid)
		}
		if _, err := client.Write(append(header[:5:5], body...)); err != nil {
			return
		}
	}
}

// A pooler that looks like a server is detected by the server's errors about statements that are already prepared.
func TestAPoolerThatLooksLikeAServerIsFoundOut(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	pooler := locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 1") // so that the process id stays the same
	dsn := misleading(t, pooler)
	a := newLocker(t, open(t, "pgx", dsn), leasetable.WithTTL(time.Hour))
	first := take(t, a, "a") // prepares statements
	if leasetable.BehindPooler(a) {
		t.Fatal("the pooler was recognised at once")
	}
	b := newLocker(t, open(t, "pgx", dsn), leasetable.WithTTL(time.Hour))
	take(t, b, "b") // meets those statements
	if !leasetable.BehindPooler(b) {
		t.Error("what others have prepared did not matter")
	}
	mustBeHeld(t, b, "a")

	forget := open(t, "pgx", pooler)
	if _, err := forget.ExecContext(t.Context(), "DEALLOCATE ALL"); err != nil {
		t.Fatal(err)
	}
	release(t, first)
	if take(t, a, "a").Token() != 2 {
		t.Error("a lock was not taken once")
	}
	if take(t, a, "c").Token() != 1 { // with the statement of the first lock
		t.Error("a lock was not taken once")
	}
	if !leasetable.BehindPooler(a) {
		t.Error("what is not prepared any more did not matter")
	}
}

// The Locker does not configure the application's own connections: there the error says what to do.
func TestAGuardSaysWhatItsConnectionNeedsBehindAPooler(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	pooled := open(t, "pgx", locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 1"))
	lease := take(t, newLocker(t, pooled), "x")
	guard := func() error {
		conn, err := pooled.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() }) // the next call gets another connection
		tx, err := conn.BeginTxx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }() // whatever the result is
		return lease.Guard(t.Context(), leasetable.SQLTx(tx))
	}
	if err := guard(); err != nil {
		t.Fatal(err)
	}
	if err := guard(); err == nil || !strings.Contains(err.Error(), "default_query_exec_mode=exec") {
		t.Errorf("the error is %v", err)
	}
}

// The schema package has no connections of its own either, and needs no parameters.
func TestTheSchemaIsAppliedBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := sqltest.Postgres(t)
	dsn := locktest.StartBouncer(t, db.DSN, "transaction", "default_pool_size = 2", "server_round_robin = 1")
	for range 3 {
		if err := schema.Apply(t.Context(), open(t, "pgx", dsn).DB, schema.Postgres, schema.Tables{}); err != nil {
			t.Fatal(err)
		}
	}
}

// PgBouncer's error has the code of others that pass.
func TestAParameterThatAPoolerDoesNotKnowEndsAWait(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	dsn := locktest.StartBouncer(t, withTables(t, sqltest.Postgres(t)).DSN, "transaction")
	for _, parameter := range []string{"statement_timeout", "search_path"} {
		l, ctx := newLocker(t, open(t, "pgx", dsn+"&"+parameter+"=1")), bounded(t)
		if _, err := l.Acquire(ctx, "a"); err == nil || ctx.Err() != nil || sqllock.IsRetryable(err) || !strings.Contains(err.Error(), parameter) {
			t.Errorf("with %s, Acquire = %v", parameter, err)
		}
	}
}

// In this mode pgpool-II answers an INSERT but leaves it uncommitted. The client can only see that a transaction is
// open. I16.
func TestPgpoolThatLeavesStatementsUncommittedIsRefused(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	for _, mode := range []string{"raw", "slony"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			db := withTables(t, sqltest.Postgres(t))
			dsn := locktest.StartPgpool(t, db.DSN, mode)
			direct := newLocker(t, db.DB)
			refused := 0
			for range 8 {
				l := newLocker(t, open(t, "pgx", dsn), leasetable.WithTTL(time.Hour))
				for i := range 3 {
					name := fmt.Sprint("x", i)
					_, err := locktest.TryAnswered(bounded(t), l, name)
					switch {
					case errors.Is(err, sqllock.ErrRefused):
						if refused++; !strings.Contains(err.Error(), "pgpool") || sqllock.IsRetryable(err) {
							t.Errorf("the error is %v", err)
						}
					case err == nil: // then it must be true
						mustBeHeld(t, direct, name)
					case !errors.Is(err, sqllock.ErrHeld):
						t.Error(err)
					}
				}
			}
			if refused == 0 {
				t.Error("nothing was refused: does this version of pgpool-II commit?")
			}
		})
	}
}

// This is the usual one of its other modes.
func TestLeasesWorkBehindPgpool(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	db := withTables(t, sqltest.Postgres(t))
	l := newLocker(t, open(t, "pgx", locktest.StartPgpool(t, db.DSN, "streaming_replication")), leasetable.WithTTL(survivingTTL))
	direct := newLocker(t, db.DB)
	lease := take(t, l, "x")
	mustBeHeld(t, direct, "x")
	takeAll(t, l, "all", 100)
	eventually(t, func() bool { return count(t, db, "SELECT max(renewals) FROM sqllock_lease") >= 2 })
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if take(t, direct, "x").Token() != 2 {
		t.Error("the token of the next holder is not the next one")
	}
}
