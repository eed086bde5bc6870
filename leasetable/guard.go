package leasetable

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// Tx is a transaction of the caller, for [Lease.Guard]. [SQLTx] and [PgxTx] make one.
type Tx struct{ tx store.Transaction }

// SQLTx makes a Tx of a *sql.Tx, a *sqlx.Tx, the gorm.Tx of gorm, or the *Tx of a client that ent has generated with the
// feature sql/execquery. For a bun.Tx pass its field Tx: bun replaces the placeholders of statements.
func SQLTx(tx interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	Rollback() error // is not called; it excludes a *sql.DB, which has none
},
) Tx {
	return Tx{store.Transaction{
		// Scan does what QueryRowContext and Scan do. A transaction of ent has no QueryRowContext.
		Scan: func(ctx context.Context, query string, args []any, to any) error {
			rows, err := tx.QueryContext(ctx, query, args...)
			if err != nil {
				return err
			}
			defer rows.Close()
			if !rows.Next() {
				return cmp.Or(rows.Err(), sql.ErrNoRows)
			}
			return cmp.Or(rows.Scan(to), rows.Close())
		},
		Exec: func(ctx context.Context, query string, args []any) (sql.Result, error) {
			return tx.ExecContext(ctx, query, args...)
		},
	}}
}

// PgxTx makes a Tx of a pgx.Tx.
func PgxTx[R interface{ Scan(to ...any) error }](tx interface {
	QueryRow(ctx context.Context, query string, args ...any) R
	Rollback(ctx context.Context) error // is not called; it excludes a connection or a pool, which have none
},
) Tx {
	return Tx{store.Transaction{Scan: func(ctx context.Context, query string, args []any, to any) error {
		return tx.QueryRow(ctx, query, args...).Scan(to)
	}}}
}

// Guard makes sure that this lock holds the name, and that nobody takes it over before tx has ended: what tx writes,
// in the same database, is written by the holder or not at all. Call Guard once, before or after the writes. A
// renewal never waits for tx. Begin tx when the lock is held: above READ COMMITTED a transaction that has read before may
// not see what the last holder wrote.
//
// For a name with shares or permits, Guard pins only the share or permit of this lock: other holders come and go
// meanwhile.
//
// End tx before Release. Otherwise Release waits for tx, as every session does, and returns after 5 s that it was not
// confirmed.
//
// Behind a transaction pooler the connection of tx needs what every use of its driver needs there: with pgx
// default_query_exec_mode=exec, unless the pooler keeps prepared statements.
//
// After an error tx must be rolled back. The error matches sqllock.ErrLost if somebody else has the name, and
// sqllock.ErrReadOnly if the server is a standby, or on MySQL and MariaDB read_only: it may be a replica, on which the
// guard would keep nobody out. One that lags may give ErrLost. If the lock's context has ended, Guard returns its cause
// and does not ask the database.
//
// What ends a guard before the commit, so that what tx writes then is not guarded:
//   - a ROLLBACK TO a savepoint that was set before Guard. Guard the outer transaction, not one nested in it.
//   - a COMMIT by hand, or one that is implicit, as of DDL on MySQL and MariaDB. Guard does not see one before it, either.
//   - an error that rolls tx back although it goes on to take statements, such as a deadlock (1213) on MySQL and MariaDB,
//     or an interrupted write on SQLite. Roll tx back after any error.
//
// Below SERIALIZABLE isolation a takeover by somebody else, and every acquisition of the name, waits until tx has
// ended. On PostgreSQL and MySQL above READ COMMITTED, and on MariaDB, tx can fail with a serialization error
// instead, as it does for rows of its own. On PostgreSQL above READ COMMITTED it also does so if somebody has begun
// to wait for the name since tx began to read. On SQLite nobody waits: tx fails at its next write (SQLITE_BUSY) if
// somebody else has written to the file since tx began to read, as a takeover does. BEGIN IMMEDIATE prevents that.
func (le *Lease) Guard(ctx context.Context, tx Tx) error {
	err := errEmptyTx
	if tx.tx.Scan != nil {
		err = le.held.Pin(ctx, tx.tx)
	}
	return le.failed("guard", err)
}

var errEmptyTx = errors.New("the Tx is empty: make it with SQLTx or PgxTx")

// Verify asks the database whether this lock still holds the name, and whether its lease lasts by the clock of the
// database. After ErrLost or ErrExpired the lock's context has ended, too. Any other error says nothing about the lock.
//
// The answer may be out of date when Verify returns. Where that matters, use Guard, or let the resource compare
// tokens.
func (le *Lease) Verify(ctx context.Context) error {
	return le.failed("verify", le.held.Verify(ctx))
}
