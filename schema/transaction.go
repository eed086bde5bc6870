package schema

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/internal/connector"
)

// reading calls fn so that the connection returns to the pool with no transaction open, even if the DSN has set
// autocommit=0.
func reading(ctx context.Context, db *sql.DB, d Dialect, fn func(querier) error) error {
	if d == SQLite {
		// A DSN may make every transaction one that writes (_txlock=immediate). SQLite has no autocommit that could be
		// off.
		conn, err := db.Conn(ctx)
		if err != nil {
			return fmt.Errorf("schema: connect: %w", err)
		}
		defer func() { _ = conn.Close() }()
		return fn(conn)
	}
	return transact(ctx, db, d, true, fn)
}

// writing calls fn in a transaction that is committed if fn returns nil.
func writing(ctx context.Context, db *sql.DB, d Dialect, fn func(querier) error) error {
	if d == SQLite {
		return immediately(ctx, db, fn)
	}
	return transact(ctx, db, d, false, fn)
}

func transact(ctx context.Context, db *sql.DB, d Dialect, readOnly bool, fn func(querier) error) error {
	opts := &sql.TxOptions{ReadOnly: readOnly}
	if d == Postgres || readOnly {
		// Each statement must see what was committed while the one before it waited, and must not lock the rows that it
		// reads, whatever the default of the database is. For writing, MySQL keeps its default: a server with a
		// statement-based binary log refuses INSERT at READ COMMITTED, and CREATE TABLE ends the transaction anyway.
		opts.Isolation = sql.LevelReadCommitted
	}
	begin := db.BeginTx
	var mode any
	switch {
	case d == Postgres:
		var err error
		if mode, err = unprepared(ctx, db); err != nil {
			if connector.Unparsable(err) { // pgx's error repeats the string
				err = connector.ErrUnparsable
			}
			return fmt.Errorf("schema: connect: %w", err)
		}
	case !readOnly:
		conn, err := impatient(ctx, db)
		if err != nil {
			return err
		}
		defer discard(conn)
		begin = conn.BeginTx
	}
	tx, err := begin(ctx, opts)
	if err != nil {
		return fmt.Errorf("schema: begin: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := fn(modal{tx, mode}); err != nil {
		if connector.Misprepared(err) {
			return fmt.Errorf("%w; %s", err, connector.PrepareNothing)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("schema: commit: %w", err)
	}
	return nil
}

// impatient returns a connection to MySQL or MariaDB that waits for a table for a second at a time: by default that is a
// year on MySQL and a day on MariaDB, and all later statements on the table queue behind it. The caller discards the
// connection, so that the setting reaches nobody else.
func impatient(ctx context.Context, db *sql.DB) (*sql.Conn, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("schema: connect: %w", err)
	}
	if _, err := conn.ExecContext(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		discard(conn)
		return nil, fmt.Errorf("schema: limit waits for tables: %w", err)
	}
	return conn, nil
}

// discard closes a connection, and so keeps it out of the pool.
func discard(conn *sql.Conn) { _ = conn.Raw(func(any) error { return driver.ErrBadConn }) }

// unprepared returns the result of connector.Unprepared for the connections of db.
func unprepared(ctx context.Context, db *sql.DB) (mode any, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	err = conn.Raw(func(dc any) error {
		mode = connector.Unprepared(dc)
		return nil
	})
	return mode, err
}

// modal is a transaction whose statements have the mode as their first argument, unless it is nil.
type modal struct {
	tx   *sql.Tx
	mode any
}

func (m modal) args(args []any) []any {
	if m.mode == nil {
		return args
	}
	return append([]any{m.mode}, args...)
}

// ExecContext implements querier.
func (m modal) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return m.tx.ExecContext(ctx, query, m.args(args)...)
}

// QueryContext implements querier.
func (m modal) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return m.tx.QueryContext(ctx, query, m.args(args)...)
}

// QueryRowContext implements querier.
func (m modal) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return m.tx.QueryRowContext(ctx, query, m.args(args)...)
}

// immediately calls fn in a SQLite transaction that takes the write lock when it begins: a transaction that reads first
// and writes later can be refused without being allowed to wait.
func immediately(ctx context.Context, db *sql.DB, fn func(querier) error) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("schema: connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		if ctx.Err() != nil { // the driver may have begun
			rollback(context.WithoutCancel(ctx), conn)
		}
		return fmt.Errorf("schema: begin: %w", err)
	}
	defer func() {
		if err != nil {
			rollback(context.WithoutCancel(ctx), conn)
		}
	}()
	if err := fn(conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "COMMIT"); err != nil {
		return fmt.Errorf("schema: commit: %w", err)
	}
	return nil
}

// rollback ends the transaction of conn. If it cannot, it keeps conn out of the pool.
func rollback(ctx context.Context, conn *sql.Conn) {
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err == nil {
		return
	}
	// SQLite rolls back by itself after some failures, so rollback tests whether a transaction can begin.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err == nil {
		if _, err := conn.ExecContext(ctx, "ROLLBACK"); err == nil {
			return
		}
	}
	discard(conn)
}

// sqlState returns the SQLSTATE of an error of a PostgreSQL driver, or an empty string if it has none.
func sqlState(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return ""
}
