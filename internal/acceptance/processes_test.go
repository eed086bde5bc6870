//go:build !race

package acceptance_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

const (
	counters    = 8
	rounds      = 50
	deployers   = 6
	lostNothing = "the processes without a lock lost no update: the test proves nothing"
	createOnce  = "CREATE TABLE migrated (id INT NOT NULL PRIMARY KEY)"
)

// count increments a number that only the lock guards: separate statements read and write it.
func count(ctx context.Context, l sqllock.Locker, db *sqlx.DB) error {
	for range rounds {
		err := sqllock.Do(ctx, l, "the counter", func(ctx context.Context) error {
			var n int
			if err := db.GetContext(ctx, &n, "SELECT n FROM counter"); err != nil {
				return err
			}
			_, err := db.ExecContext(ctx, db.Rebind("UPDATE counter SET n = ?"), n+1)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// migrate makes a change that fails if it is made twice, unless it has been made already.
func migrate(ctx context.Context, l sqllock.Locker, db *sqlx.DB) error {
	return sqllock.Do(ctx, l, "migration", func(ctx context.Context) error {
		var done int
		if err := db.GetContext(ctx, &done, "SELECT count(*) FROM migrations"); err != nil || done > 0 {
			return err
		}
		if _, err := db.ExecContext(ctx, createOnce); err != nil {
			return err
		}
		_, err := db.ExecContext(ctx, "INSERT INTO migrations (id) VALUES (1)")
		return err
	})
}

// onEvery runs a test for each kind of lock on each kind of database.
func onEvery(t *testing.T, test func(t *testing.T, db *sqltest.Database, kind string)) {
	t.Helper()
	for _, c := range []struct {
		name string
		open func(sqltest.TB, ...sqltest.Option) *sqltest.Database
		kind string
	}{
		{"PostgreSQL", sqltest.Postgres, "session"},
		{"PostgreSQL", sqltest.Postgres, "lease"},
		{"MySQL", sqltest.MySQL, "session"},
		{"MySQL", sqltest.MySQL, "lease"},
		{"MariaDB", sqltest.MariaDB, "session"},
		{"MariaDB", sqltest.MariaDB, "lease"},
		{"SQLite", sqltest.SQLite, "lease"},
	} {
		t.Run(fmt.Sprintf("%s %s", c.name, c.kind), func(t *testing.T) {
			t.Parallel()
			db := c.open(t)
			d, err := schema.DialectOf(db.DriverName())
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{}); err != nil {
				t.Fatal(err)
			}
			test(t, db, c.kind)
		})
	}
}

func run(t *testing.T, db *sqltest.Database, statements ...string) {
	t.Helper()
	for _, statement := range statements {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func number(t *testing.T, db *sqltest.Database, query string) (n int) {
	t.Helper()
	if err := db.GetContext(t.Context(), &n, query); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestProcessesThatLockLoseNoUpdate(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database, kind string) {
		run(t, db, "CREATE TABLE counter (n INT NOT NULL)", "INSERT INTO counter (n) VALUES (0)")
		runWorkers(t, counters, "count", "none", db)
		if n := number(t, db, "SELECT n FROM counter"); n >= counters*rounds {
			t.Fatal(lostNothing)
		}
		run(t, db, "UPDATE counter SET n = 0")
		runWorkers(t, counters, "count", kind, db)
		if n := number(t, db, "SELECT n FROM counter"); n != counters*rounds {
			t.Errorf("%d processes with %d rounds each counted to %d", counters, rounds, n)
		}
	})
}

func TestOfProcessesThatDeployTogetherOneMigrates(t *testing.T) {
	t.Parallel()
	locktest.OncePerEngine(t)
	onEvery(t, func(t *testing.T, db *sqltest.Database, kind string) {
		run(t, db, "CREATE TABLE migrations (id INT NOT NULL)")
		runWorkers(t, deployers, "migrate", kind, db)
		if n := number(t, db, "SELECT count(*) FROM migrations"); n != 1 {
			t.Errorf("the migration ran %d times", n)
		}
	})
}
