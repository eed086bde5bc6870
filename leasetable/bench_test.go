package leasetable_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// durable are server settings with which no confirmed commit is lost.
var durable = map[sqltest.Engine][]sqltest.Option{
	sqltest.EnginePostgres: {sqltest.Setting("fsync", "on"), sqltest.Setting("full_page_writes", "on")},
	sqltest.EngineMySQL:    {sqltest.Setting("innodb-flush-log-at-trx-commit", "1")},
	sqltest.EngineMariaDB:  {sqltest.Setting("innodb-flush-log-at-trx-commit", "1")},
}

// BenchmarkLocker compares a Locker with the two statements alone, prepared, on dedicated connections. All commits are
// durable.
func BenchmarkLocker(b *testing.B) {
	for _, engine := range []sqltest.Engine{sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB} {
		b.Run(string(engine), func(b *testing.B) {
			benchOn(b, startDurable(b, engine)).Run(b)
		})
	}
}

// BenchmarkDurableRelease makes releases on PostgreSQL wait for the disk, too, as they do on the other servers.
func BenchmarkDurableRelease(b *testing.B) {
	benchOn(b, startDurable(b, sqltest.EnginePostgres), leasetable.WithDurableRelease()).RunFree(b)
}

func benchOn(b *testing.B, db *sqltest.Database, opts ...leasetable.Option) locktest.Bench {
	b.Helper()
	return locktest.Bench{
		Locker: func(b *testing.B) locktest.Locker {
			b.Helper()
			l, err := leasetable.FromDB(db.DB.DB, append(opts, leasetable.WithLogger(nil))...)
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = l.Close() }) // the benchmark is over
			return ofAnyKind(l)
		},
		Bare:  func(b *testing.B) locktest.Bare { return newBare(b, db) },
		Queue: func(b *testing.B) locktest.Bare { return newQueue(b, db) },
		Child: func(job locktest.Job) []string {
			return []string{jobEnv + "=" + strings.Join([]string{string(job), db.DriverName(), db.DSN}, " ")}
		},
	}
}

func startDurable(b *testing.B, engine sqltest.Engine, settings ...sqltest.Option) *sqltest.Database {
	b.Helper()
	var db *sqltest.Database
	if testing.Short() { // measures nothing, so the shared server will do
		db = map[sqltest.Engine]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
			sqltest.EnginePostgres: sqltest.Postgres, sqltest.EngineMySQL: sqltest.MySQL, sqltest.EngineMariaDB: sqltest.MariaDB,
		}[engine](b)
	} else {
		db = sqltest.Start(b, engine, slices.Concat(durable[engine], settings)...).Database(b)
	}
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		b.Fatal(err)
	}
	if err := schema.Apply(b.Context(), db.DB.DB, d, schema.Tables{}); err != nil {
		b.Fatal(err)
	}
	return db
}

// bare acquires and releases the row of a name with one UPDATE each.
type bare struct{ insert, claim, free *sqlx.Stmt }

func newBare(b *testing.B, db *sqltest.Database) bare {
	b.Helper()
	prepare := preparer(b, db)
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

// preparer prepares statements on a connection of their own.
func preparer(b *testing.B, db *sqltest.Database) func(query string) *sqlx.Stmt {
	b.Helper()
	conn, err := db.Connx(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close() }) // the benchmark is over
	return func(query string) *sqlx.Stmt {
		b.Helper()
		stmt, err := conn.PreparexContext(b.Context(), db.Rebind(query))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = stmt.Close() }) // the benchmark is over
		return stmt
	}
}

var bareID = []byte("0123456789abcdef")

func (c bare) Try(ctx context.Context, name string) error {
	err := one(ctx, c.claim, bareID, []byte(name))
	if errors.Is(err, errNotOne) { // the first time there is no row
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

// queue waits in the server's own queue, for a session lock.
type queue struct{ wait, unlock *sqlx.Stmt }

func newQueue(b *testing.B, db *sqltest.Database) queue {
	b.Helper()
	wait, unlock := "SELECT GET_LOCK(?, 3600)", "SELECT RELEASE_LOCK(?)"
	if db.Engine == sqltest.EnginePostgres {
		wait, unlock = "SELECT 1 FROM pg_advisory_lock(hashtext(?))", "SELECT pg_advisory_unlock(hashtext(?))::integer"
	}
	prepare := preparer(b, db)
	return queue{prepare(wait), prepare(unlock)}
}

func (q queue) Try(ctx context.Context, name string) error  { return q.Wait(ctx, name) }
func (q queue) Wait(ctx context.Context, name string) error { return yes(ctx, q.wait, name) }
func (q queue) Unlock(ctx context.Context, name string) error {
	return yes(ctx, q.unlock, name)
}

func yes(ctx context.Context, stmt *sqlx.Stmt, name string) error {
	var n int
	if err := stmt.GetContext(ctx, &n, name); err != nil || n != 1 {
		return errors.Join(errNotOne, err)
	}
	return nil
}

// jobEnv makes this test binary a child process that does a job for a benchmark: "job driver dsn".
const jobEnv = "SQLLOCK_TEST_JOB"

func doJob() error {
	job, rest, _ := strings.Cut(os.Getenv(jobEnv), " ")
	driverName, dsn, _ := strings.Cut(rest, " ")
	db, err := sqlx.Open(driverName, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	l, err := fromDB(db)
	if err != nil {
		return err
	}
	return errors.Join(locktest.Job(job).Run(ofAnyKind(l), os.Stdin, os.Stdout), l.Close())
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
