package leasetable_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/history"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// register is the register that holders write to. Every name has two rows, one for guarded writes and one that compares
// tokens. A write changes the row, and keeps it locked until the line of the journal is committed: seq numbers the
// lines in the order of their commits.
type register struct {
	db *sqlx.DB
	n  atomic.Int64 // counts guarded writes
}

var _ history.Register = (*register)(nil)

const (
	guardedKey = "guarded "
	fencedKey  = "fenced "
)

// newRegister creates the tables.
func newRegister(t *testing.T, db *sqltest.Database, names ...string) *register {
	t.Helper()
	run(t, db, "CREATE TABLE register (name VARCHAR(50) PRIMARY KEY, seq BIGINT NOT NULL, token BIGINT NOT NULL, process BIGINT NOT NULL)")
	run(t, db, "CREATE TABLE journal (name VARCHAR(50) NOT NULL, seq BIGINT NOT NULL, token BIGINT NOT NULL, process BIGINT NOT NULL, PRIMARY KEY (name, seq))")
	for _, name := range names {
		for _, key := range []string{guardedKey, fencedKey} {
			run(t, db, "INSERT INTO register (name, seq, token, process) VALUES (?, 0, 0, 0)", key+name)
		}
	}
	return &register{db: db.DB}
}

// levels are the isolation levels of guarded writes, which alternate.
var levels = []sql.IsolationLevel{
	sql.LevelDefault, sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable,
}

// Guard implements history.Register. Sometimes the guard comes after the writes. If it comes first, there is a pause in
// between.
func (r *register) Guard(ctx context.Context, lock sqllock.Lock) error {
	n := int(r.n.Add(1))
	opts := &sql.TxOptions{}
	if r.db.DriverName() != "sqlite" {
		opts.Isolation = levels[n%len(levels)]
	}
	return r.tx(ctx, opts, func(tx *sqlx.Tx) error {
		lease := lock.(*leasetable.Lease)
		first := n%4 != 0
		if first {
			if err := lease.Guard(ctx, leasetable.SQLTx(tx)); err != nil {
				return err
			}
			pause(ctx)
		}
		if _, err := put(ctx, tx, guardedKey+lease.Name(), lease.Token(), ""); err != nil {
			return err
		}
		if !first {
			return lease.Guard(ctx, leasetable.SQLTx(tx))
		}
		return nil
	})
}

// write is Guard without the guard.
func (r *register) write(ctx context.Context, lease *leasetable.Lease) error {
	return r.tx(ctx, nil, func(tx *sqlx.Tx) error {
		_, err := put(ctx, tx, guardedKey+lease.Name(), lease.Token(), "")
		return err
	})
}

// Fence implements history.Register, for a holder that has just found its context alive.
func (r *register) Fence(ctx context.Context, lock sqllock.Lock) error {
	if lock.Context().Err() != nil {
		return context.Cause(lock.Context())
	}
	return r.fence(ctx, lock.(*leasetable.Lease))
}

func (r *register) fence(ctx context.Context, lease *leasetable.Lease) error {
	return r.tx(ctx, nil, func(tx *sqlx.Tx) error {
		rows, err := put(ctx, tx, fencedKey+lease.Name(), lease.Token(), " AND token <= ?", lease.Token())
		if err == nil && rows == 0 {
			return history.ErrOutdone
		}
		return err
	})
}

func (r *register) tx(ctx context.Context, opts *sql.TxOptions, f func(tx *sqlx.Tx) error) error {
	tx, err := r.db.BeginTxx(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// pause waits for up to 20 ms, in which the process may be stopped for long.
func pause(ctx context.Context) {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(20 * time.Millisecond))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// put writes a row and its line, and returns how many rows matched the condition.
func put(ctx context.Context, tx *sqlx.Tx, key string, token int64, condition string, args ...any) (int64, error) {
	args = append([]any{token, os.Getpid(), key}, args...)
	result, err := tx.ExecContext(ctx, tx.Rebind("UPDATE register SET seq = seq + 1, token = ?, process = ? WHERE name = ?"+condition), args...)
	if err != nil {
		return 0, err
	}
	rows, err := result.RowsAffected()
	if err != nil || rows == 0 {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, tx.Rebind("INSERT INTO journal (name, seq, token, process) SELECT name, seq, token, process FROM register WHERE name = ?"), key)
	return rows, err
}

// journal returns all lines.
func (r *register) journal(t *testing.T) []history.Line {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lines []history.Line
	if err := r.db.SelectContext(ctx, &lines, "SELECT name, token, process FROM journal ORDER BY name, seq"); err != nil {
		t.Fatal(err)
	}
	return lines
}
