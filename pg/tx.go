package pg

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

// Tx is a transaction to take locks in: a pgx.Tx as it is, or one of database/sql by [SQLTx].
type Tx interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Rollback(ctx context.Context) error // never called; it keeps out connections and pools, which have none
}

// SQLTx makes a [Tx] of a *sql.Tx, a *sqlx.Tx or another transaction that passes statements and their arguments on
// unchanged, such as the *Tx of a client that ent has generated with the feature sql/execquery. The driver must be pgx's
// stdlib. For a bun.Tx pass its field Tx: bun replaces the placeholders of statements.
func SQLTx(tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Rollback() error // never called; it keeps out a *sql.DB, which has none
},
) Tx {
	return sqlTx{tx}
}

// LockTx waits in the server's queue for the lock called name, and takes it for tx. It is the same lock as that of a
// [Locker]: each excludes the other. LockTx is one statement and one round trip, and works behind a pooler that pools
// transactions.
//
// The lock ends with the transaction: by commit, by rollback, by rollback to a savepoint that was set before the lock
// was taken, or by the end of the connection. After PREPARE TRANSACTION only COMMIT PREPARED or ROLLBACK PREPARED ends it:
// it outlasts the connection and a restart of the server. Nothing else releases it. A transaction that has the lock may
// take it again.
//
// In a transaction at REPEATABLE READ or SERIALIZABLE that has not read anything yet, the statement that waits also
// takes the snapshot, before the wait. What the transaction reads then is older than the lock, and may lack what the
// previous holder committed. At READ COMMITTED, PostgreSQL's default, each later statement sees it. At the other
// levels, acquire the lock from a Locker before the transaction begins.
//
// A wait is part of an open transaction, and CREATE INDEX CONCURRENTLY waits for open transactions: guard migrations
// with a Locker.
//
// When ctx ends during the wait, the driver closes the connection, and so ends the transaction. To keep the
// transaction, set its lock_timeout, and a savepoint to roll back to: the error then matches sqllock.ErrHeld.
// sqllock.WithWait is refused (sqllock.ErrUnsupported). After any error from the server, PostgreSQL accepts nothing
// but a rollback. Until then the locks that were taken earlier stay held.
//
// LockTx refuses (sqllock.ErrRefused), and takes nothing, where the lock would not exclude others or would end at
// once: on a standby (also sqllock.ErrReadOnly), on CockroachDB, and when tx has failed or is not in a transaction,
// for example after a COMMIT by hand. A transaction that is over gives its driver's error.
//
// With [WithShared], two transactions that hold a share and then wait for the exclusive lock wait for each other, until
// PostgreSQL ends one of them (40P01).
func LockTx(ctx context.Context, tx Tx, name string, opts ...sqllock.Option) error {
	return lockTx(ctx, tx, name, opts, txLockSQL)
}

// TryLockTx is [LockTx] without the wait: if somebody else has the lock, or a share of it, it fails at once with a
// *sqllock.HeldError, which does not know the holder. The transaction remains usable. sqllock.WithWait has no effect.
func TryLockTx(ctx context.Context, tx Tx, name string, opts ...sqllock.Option) error {
	return lockTx(ctx, tx, name, opts, txTrySQL)
}

func lockTx(ctx context.Context, tx Tx, name string, opts []sqllock.Option, statement string) error {
	const op = "acquire"
	w, err := want(op, name, opts)
	if err != nil {
		return err
	}
	if w.Wait != nil && statement == txLockSQL {
		return &sqllock.OpError{Op: op, Name: name, Err: fmt.Errorf(
			"%w: sqllock.WithWait, which is not for a transaction lock: set the transaction's lock_timeout, or the deadline of the context", sqllock.ErrUnsupported)}
	}
	if err := takeInTx(ctx, tx, w, statement); err != nil {
		return &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return nil
}

func takeInTx(ctx context.Context, tx Tx, w session.Want[key], statement string) error {
	if tx == nil {
		return errNoTx
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	arg := &txArg{op: &session.Op[key]{Key: w.Key, Shared: w.Shared, Take: true}}
	var outcome string
	// QueryExecModeExec needs one round trip, also the first time, and leaves no prepared statement in a session that
	// may be a pooler's.
	err := tx.QueryRow(ctx, statement, arg, pgx.QueryExecModeExec).Scan(&outcome)
	switch {
	case arg.refused != nil:
		return arg.refused
	case err == nil && !arg.seen:
		return errNotSeen
	case connector.CodeOf(err) == "55P03":
		return fmt.Errorf("%w, longer than the transaction's lock_timeout; the transaction must be rolled back: %w",
			&sqllock.HeldError{Name: w.Name}, err)
	case err != nil && ctx.Err() != nil && !errors.Is(err, context.Cause(ctx)):
		return fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case err != nil:
		return withLimit(err)
	case outcome == "held":
		return &sqllock.HeldError{Name: w.Name}
	case outcome == "standby":
		return errStandby
	}
	return nil
}

// txArg is the argument of a statement that takes a lock. pgx asks it to rewrite the query before anything is sent, for
// a *sql.Tx as well, and passes it the connection of the transaction.
type txArg struct {
	op      *session.Op[key]
	seen    bool // pgx has asked
	refused error
}

var errNoTx = errors.New("there is no transaction: pass the pgx.Tx that Begin has returned, or pg.SQLTx of a *sql.Tx")

var errNotSeen = errors.New("the transaction does not pass its arguments on to pgx: give pg.SQLTx the *sql.Tx beneath it")

var (
	_ pgx.QueryRewriter = (*txArg)(nil)
	_ driver.Valuer     = (*txArg)(nil)
)

func (a *txArg) RewriteQuery(_ context.Context, conn *pgx.Conn, query string, _ []any) (string, []any, error) {
	a.seen, a.refused = true, refuseTx(conn.PgConn())
	return query, []any{kindOf(a.op), a.op.Key.n}, a.refused
}

// Value implements driver.Valuer, which pgx's stdlib does not call.
func (a *txArg) Value() (driver.Value, error) {
	return nil, errors.New("transaction locks on PostgreSQL need a *sql.Tx of github.com/jackc/pgx/v5/stdlib")
}

// refuseTx refuses a connection for what is known without asking the server (I49).
func refuseTx(conn *pgconn.PgConn) error {
	switch status := conn.TxStatus(); {
	case conn.ParameterStatus("crdb_version") != "":
		return &refusal.Error{
			Seen:    "the server is CockroachDB, whose advisory locks do nothing",
			Instead: "lock a row with SELECT … FOR UPDATE, or use a lease (package leasetable)",
		}
	case status == 'E':
		return &refusal.Error{
			Seen:    "the transaction has failed: a statement before this one had an error",
			Instead: "roll back, all of it or to a savepoint, before the lock is taken",
		}
	case status != 'T':
		return &refusal.Error{
			Seen:    "the connection is not in a transaction, which somebody ended by hand; the lock would end with its statement",
			Instead: "take it between Begin and Commit of the same transaction, or use a session lock (pg.New)",
		}
	}
	return nil
}

// sqlTx makes a transaction of database/sql look like a pgx.Tx.
type sqlTx struct {
	tx interface {
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
		Rollback() error
	}
}

// QueryRow implements Tx. A transaction of ent has no QueryRowContext.
func (t sqlTx) QueryRow(ctx context.Context, query string, args ...any) pgx.Row {
	return sqlRow(func(to ...any) error {
		rows, err := t.tx.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		if !rows.Next() {
			return cmp.Or(rows.Err(), sql.ErrNoRows)
		}
		return cmp.Or(rows.Scan(to...), rows.Close())
	})
}

func (t sqlTx) Rollback(context.Context) error { return t.tx.Rollback() }

// sqlRow is a row that is asked for when it is scanned.
type sqlRow func(to ...any) error

func (r sqlRow) Scan(to ...any) error { return r(to...) }
