package pg_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkLocker compares a Locker with the bare driver: pgx on a dedicated connection, with its cache of prepared
// statements.
func BenchmarkLocker(b *testing.B) {
	db := sqltest.Postgres(b)
	locktest.Bench{
		Locker:   func(b *testing.B) locktest.Locker { return newLocker(b, db) },
		Bare:     func(b *testing.B) locktest.Bare { return newBare(b, db.DSN) },
		Child:    func(job locktest.Job) []string { return childEnv(db.DSN, 15*time.Second, string(job)) },
		Observer: newObserver(b, db),
	}.Run(b)
}

// BenchmarkFleet compares Lockers as many processes have them with as many bare connections.
func BenchmarkFleet(b *testing.B) {
	var db *sqltest.Database
	if testing.Short() { // measures nothing, so the shared server will do
		db = sqltest.Postgres(b)
	} else {
		db = sqltest.Start(b, sqltest.EnginePostgres, sqltest.Setting("max_connections", "1000")).Database(b)
	}
	locktest.Fleet{
		Locker: func(b *testing.B) locktest.Locker { return newLocker(b, db) },
		Bare:   func(b *testing.B) locktest.Bare { return newBare(b, db.DSN) },
		Far: func(b *testing.B, via func(string) string) (locktest.Locker, locktest.Bare) {
			b.Helper()
			u, err := url.Parse(db.DSN)
			if err != nil {
				b.Fatal(err)
			}
			u.Host = via(u.Host)
			return closing(b)(pg.New(u.String(), pg.WithSessionTTL(time.Hour), pg.WithLogger(nil))), newBare(b, u.String())
		},
		Counts: newObserver(b, db),
	}.Run(b)
}

func newObserver(b *testing.B, db *sqltest.Database) observer {
	b.Helper()
	elsewhere, err := pgx.ParseConfig(db.DSN)
	if err != nil {
		b.Fatal(err)
	}
	database := elsewhere.Database
	elsewhere.Database = "postgres" // so that the observer's own statements are counted there
	conn, err := pgx.ConnectConfig(b.Context(), elsewhere)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return observer{conn, database}
}

type bare struct{ conn *pgx.Conn }

func newBare(b *testing.B, dsn string) bare {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = conn.Close(context.Background()) })
	return bare{conn}
}

var errRefused = errors.New("the server said no")

func (c bare) Try(ctx context.Context, name string) error {
	return c.yes(ctx, "SELECT pg_try_advisory_lock($1)", name)
}

func (c bare) Wait(ctx context.Context, name string) error {
	_, err := c.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", pg.Key(name))
	return err
}

func (c bare) Unlock(ctx context.Context, name string) error {
	return c.yes(ctx, "SELECT pg_advisory_unlock($1)", name)
}

func (c bare) yes(ctx context.Context, query, name string) error {
	var ok bool
	err := c.conn.QueryRow(ctx, query, pg.Key(name)).Scan(&ok)
	if err == nil && !ok {
		err = errRefused
	}
	return err
}

// observer observes a database from another database.
type observer struct {
	conn     *pgx.Conn
	database string
}

func (o observer) Connections(ctx context.Context) (int, error) {
	return o.ask(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND application_name LIKE 'sqllock/%'`)
}

func (o observer) Waiting(ctx context.Context) (int, error) {
	return o.ask(ctx, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
		AND database = (SELECT oid FROM pg_database WHERE datname = $1)`)
}

// Statements counts transactions, one per statement. A session reports them from time to time, and when it ends.
func (o observer) Statements(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, soon)
	defer cancel()
	for {
		n, err := o.Connections(ctx)
		if err != nil {
			return 0, err
		}
		if n == 0 {
			return o.ask(ctx, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = $1")
		}
	}
}

func (o observer) ask(ctx context.Context, query string) (n int, err error) {
	err = o.conn.QueryRow(ctx, query, o.database).Scan(&n)
	return n, err
}
