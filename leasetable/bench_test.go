package leasetable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// durable are the settings of a server that forgets nothing that it confirmed.
var durable = map[sqltest.Engine][]string{
	sqltest.EnginePostgres: {"fsync=on", "full_page_writes=on"},
	sqltest.EngineMySQL:    {"innodb-flush-log-at-trx-commit=1"},
	sqltest.EngineMariaDB:  {"innodb-flush-log-at-trx-commit=1"},
}

// BenchmarkLocker measures a Locker beside the two statements, bare and prepared, on pinned
// connections; all are durable.
func BenchmarkLocker(b *testing.B) {
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			db := sqltest.Start(b, engine, durable[engine]...).Database(b)
			d, err := schema.DialectOf(db.DriverName())
			if err != nil {
				b.Fatal(err)
			}
			if err := schema.Apply(b.Context(), db.DB.DB, d, schema.Tables{}); err != nil {
				b.Fatal(err)
			}
			locktest.Bench{
				Locker: func(b *testing.B) locktest.Locker {
					b.Helper()
					l, err := leasetable.New(db.DB)
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { _ = l.Close() }) // the benchmark is over
					return l
				},
				Bare: func(b *testing.B) locktest.Bare { return newBare(b, db) },
			}.Run(b)
		})
	}
}

// bare claims and frees the row of a name by one UPDATE each.
type bare struct{ insert, claim, free *sqlx.Stmt }

func newBare(b *testing.B, db *sqltest.Database) bare {
	b.Helper()
	conn, err := db.Connx(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() }) // the benchmark is over
	prepare := func(query string) *sqlx.Stmt {
		stmt, err := conn.PreparexContext(b.Context(), db.Rebind(query))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = stmt.Close() }) // the benchmark is over
		return stmt
	}
	now := map[sqltest.Engine]string{
		sqltest.EnginePostgres: "clock_timestamp()",
		sqltest.EngineSQLite:   "CAST(unixepoch('subsec') * 1000000 AS INTEGER)",
	}[db.Engine]
	if now == "" {
		now = "UTC_TIMESTAMP(6)"
	}
	return bare{
		insert: prepare("INSERT INTO sqllock_lock (name, token, acquired_at) VALUES (?, 1, " + now + ")"),
		claim: prepare("UPDATE sqllock_lock SET token = token + 1, lease_id = ?, acquired_at = " + now +
			", released_at = NULL WHERE name = ? AND lease_id IS NULL"),
		free: prepare("UPDATE sqllock_lock SET lease_id = NULL, released_at = " + now + " WHERE name = ? AND lease_id = ?"),
	}
}

var bareID = []byte("0123456789abcdef")

func (c bare) Try(ctx context.Context, name string) error {
	err := one(ctx, c.claim, bareID, []byte(name))
	if errors.Is(err, errNotOne) { // the first time
		if _, err := c.insert.ExecContext(ctx, []byte(name)); err != nil {
			return err
		}
		err = one(ctx, c.claim, bareID, []byte(name))
	}
	return err
}

func (c bare) Wait(ctx context.Context, name string) error { return c.Try(ctx, name) }
func (c bare) Unlock(ctx context.Context, name string) error {
	return one(ctx, c.free, []byte(name), bareID)
}

var errNotOne = errors.New("not one row was changed")

func one(ctx context.Context, stmt *sqlx.Stmt, args ...any) error {
	result, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n != 1 {
		return errors.Join(errNotOne, err)
	}
	return nil
}
