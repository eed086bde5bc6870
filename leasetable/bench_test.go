package leasetable_test

import (
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkAcquireRelease times a pair through a Locker and the same two statements, bare and
// prepared, on one connection of the driver, by turns in the same run.
func BenchmarkAcquireRelease(b *testing.B) {
	for name, open := range map[string]func(sqltest.TB) *sqltest.Database{
		"PostgreSQL": sqltest.Postgres, "MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB, "SQLite": sqltest.SQLite,
	} {
		b.Run(name, func(b *testing.B) { benchmarkPair(b, open(b)) })
	}
}

func benchmarkPair(b *testing.B, db *sqltest.Database) {
	b.Helper()
	ctx := b.Context()
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		b.Fatal(err)
	}
	if err := schema.Apply(ctx, db.DB.DB, d, schema.Tables{}); err != nil {
		b.Fatal(err)
	}
	l, err := leasetable.New(db.DB)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close() }) // the benchmark is over
	bare := barePair(b, db)

	var locker, statements time.Duration
	for b.Loop() {
		start := time.Now()
		lock, err := l.TryAcquire(ctx, "locker")
		if err != nil {
			b.Fatal(err)
		}
		if err := lock.Release(ctx); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		bare(ctx)
		locker += middle.Sub(start)
		statements += time.Since(middle)
	}
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(float64(locker.Nanoseconds())/float64(b.N), "ns/locker")
	b.ReportMetric(float64(statements.Nanoseconds())/float64(b.N), "ns/bare")
	b.ReportMetric(float64(locker)/float64(statements), "x-bare")
}

// barePair returns a function that claims and frees the row of a name by one UPDATE each.
func barePair(b *testing.B, db *sqltest.Database) func(context.Context) {
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
	insert := prepare("INSERT INTO sqllock_lock (name, token, acquired_at) VALUES (?, 1, " + now + ")")
	claim := prepare("UPDATE sqllock_lock SET token = token + 1, lease_id = ?, acquired_at = " + now +
		", released_at = NULL WHERE name = ? AND lease_id IS NULL")
	free := prepare("UPDATE sqllock_lock SET lease_id = NULL, released_at = " + now + " WHERE name = ? AND lease_id = ?")
	id, name := []byte("0123456789abcdef"), []byte("bare")
	run := func(ctx context.Context, stmt *sqlx.Stmt, args ...any) {
		if _, err := stmt.ExecContext(ctx, args...); err != nil {
			b.Fatal(err)
		}
	}
	run(b.Context(), insert, name)
	return func(ctx context.Context) {
		run(ctx, claim, id, name)
		run(ctx, free, name, id)
	}
}
