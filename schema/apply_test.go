package schema_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestApplyMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})

		var versions []int
		must(t, db.Select(&versions, "SELECT version FROM sqllock_version"))
		if len(versions) != 1 || versions[0] != schema.Version {
			t.Errorf("versions %v, want [%d]", versions, schema.Version)
		}
	})
}

// A program that was rolled back to an earlier release must still start.
func TestTablesOfALaterReleaseServeIfTheySaySo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
		exec(t, db.DB.DB,
			fmt.Sprintf("INSERT INTO sqllock_version (version, lowest) VALUES (%d, %d)", schema.Version+1, schema.Version),
			"ALTER TABLE sqllock_lock ADD COLUMN of_later INT")
		must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
		must(t, schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{}))

		if d != schema.SQLite { // which adds no such column
			exec(t, db.DB.DB, "ALTER TABLE sqllock_lock ADD COLUMN named INT NOT NULL")
			wants(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}), "column sqllock_lock.named is int", "later release")
			exec(t, db.DB.DB, "ALTER TABLE sqllock_lock DROP COLUMN named")
		}
		exec(t, db.DB.DB, "ALTER TABLE sqllock_lock RENAME TO other", "CREATE VIEW sqllock_lock AS SELECT * FROM other")
		wants(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}), "table sqllock_lock is not an ordinary table")
		exec(t, db.DB.DB, "DROP VIEW sqllock_lock", "ALTER TABLE other RENAME TO sqllock_lock")

		exec(t, db.DB.DB, "DROP TABLE sqllock_permit")
		for how, err := range map[string]error{
			"Check": schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}), "Apply": schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{}),
		} {
			if !errors.Is(err, sqllock.ErrSchema) || !strings.Contains(err.Error(), "sqllock_permit is missing") || !strings.Contains(err.Error(), "later release") {
				t.Errorf("%s of later tables without one that this release needs: %v", how, err)
			}
		}
	})
}

func TestNoDatabaseIsAnError(t *testing.T) {
	t.Parallel()
	if schema.Apply(t.Context(), nil, schema.Postgres, schema.Tables{}) == nil || schema.Check(t.Context(), nil, schema.Postgres, schema.Tables{}) == nil {
		t.Error("a nil *sql.DB is no error")
	}
}

func TestApplyMayBeCalledByManyAtOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		var params map[string]string
		if d == schema.SQLite {
			params = map[string]string{"_pragma": "busy_timeout(0)"} // SQLite does not wait for locks
		}
		start := make(chan struct{})
		var wg sync.WaitGroup
		for range 8 {
			process := again(t, db, params)
			must(t, process.PingContext(t.Context()))
			wg.Go(func() {
				<-start
				if err := schema.Apply(t.Context(), process, d, schema.Tables{}); err != nil {
					t.Errorf("Apply: %v", err)
				}
			})
		}
		close(start)
		wg.Wait()
		must(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}))
	})
}

func TestApplyNeedsOneConnectionOnly(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		one := again(t, db, nil)
		one.SetMaxOpenConns(1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		apply(ctx, t, one, d, schema.Tables{})
		if inUse := one.Stats().InUse; inUse != 0 {
			t.Errorf("%d connections still in use", inUse)
		}
	})
}

func TestApplyWithADeadContextDoesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		because := errors.New("the test says so")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(because)
		if err := schema.Apply(ctx, db.DB.DB, d, schema.Tables{}); !errors.Is(err, because) {
			t.Errorf("Apply: %v, want the cause", err)
		}
		wants(t, schema.Check(t.Context(), db.DB.DB, d, schema.Tables{}), "table sqllock_lock is missing")
	})
}

// applying returns a transaction with the lock of one that applies.
func applying(t *testing.T, db *sqltest.Database) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	must(t, err)
	t.Cleanup(func() { _ = tx.Rollback() })
	_, err = tx.ExecContext(t.Context(), "SELECT pg_advisory_xact_lock(x'73716c6c6f636b00'::bigint)")
	must(t, err)
	return tx
}

func TestApplyQueuesBehindAnotherOnPostgreSQL(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	other := applying(t, db)
	done := make(chan error, 1)
	go func() { done <- schema.Apply(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}) }()
	for waiting := 0; waiting == 0; {
		select {
		case err := <-done:
			t.Fatalf("Apply did not wait: %v", err)
		default:
		}
		must(t, db.GetContext(t.Context(), &waiting, `
			SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`))
	}
	wants(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}), "table sqllock_lock is missing")

	must(t, other.Rollback())
	must(t, <-done)
	must(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}))
}

func TestApplyGivesUpOnABusySQLiteWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	db := sqltest.SQLite(t)
	writer, err := db.Conn(t.Context())
	must(t, err)
	defer func() { _ = writer.Close() }()
	_, err = writer.ExecContext(t.Context(), "BEGIN IMMEDIATE")
	must(t, err)

	impatient := again(t, db, map[string]string{"_pragma": "busy_timeout(0)"})
	for d := 200 * time.Millisecond; ; d *= 2 { // on a busy machine it may not even connect, or begin, in time
		ctx, cancel := context.WithTimeout(t.Context(), d)
		err = schema.Apply(ctx, impatient, schema.SQLite, schema.Tables{})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Apply while another writes: %v, want the deadline", err)
		}
		if d > 10*time.Second || strings.Contains(err.Error(), "database is locked") {
			break
		}
	}
	wants(t, err, "database is locked")

	_, err = writer.ExecContext(t.Context(), "ROLLBACK")
	must(t, err)
	apply(t.Context(), t, impatient, schema.SQLite, schema.Tables{})
}

func TestApplyWithNothingToDoNeedsNoRightToCreate(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	exec(t, db.DB.DB,
		"REVOKE CREATE ON SCHEMA public FROM PUBLIC", // PostgreSQL 15 does this by default
		"ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC")
	reader := db.User(t).DB.DB
	err := schema.Apply(t.Context(), reader, schema.Postgres, schema.Tables{})
	wants(t, err, "permission denied")
	if errors.Is(err, sqllock.ErrSchema) {
		t.Errorf("Apply: %v, which applying again would not mend", err)
	}

	apply(t.Context(), t, db.DB.DB, schema.Postgres, schema.Tables{})
	apply(t.Context(), t, reader, schema.Postgres, schema.Tables{})
}

func TestApplyLeavesForeignTablesAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		exec(t, db.DB.DB, "CREATE TABLE sqllock_lock (id INT PRIMARY KEY)", "INSERT INTO sqllock_lock VALUES (7)")
		err := schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{})
		if !errors.Is(err, sqllock.ErrSchema) {
			t.Errorf("Apply: %v, want ErrSchema", err)
		}
		wants(t, err, "column sqllock_lock.token", "never altered")

		var id int
		must(t, db.Get(&id, "SELECT id FROM sqllock_lock"))
		err = db.Get(&id, "SELECT COUNT(*) FROM sqllock_lease")
		if err == nil || errors.Is(err, sql.ErrNoRows) {
			t.Errorf("sqllock_lease exists: Apply changed something before it refused")
		}
	})
}

// A role may have a lock_timeout.
func TestApplyOutlastsAnotherThoughItsWaitsForLocksAreShort(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	other := applying(t, db)
	impatient := again(t, db, map[string]string{"lock_timeout": "100"})
	done := make(chan error, 1)
	go func() { done <- schema.Apply(t.Context(), impatient, schema.Postgres, schema.Tables{}) }()
	for waits := make(map[string]bool); len(waits) < 2; {
		select {
		case err := <-done:
			t.Fatalf("Apply did not wait again: %v", err)
		default:
		}
		var begun []string
		must(t, db.SelectContext(t.Context(), &begun, `
			SELECT query_start::text FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event = 'advisory'`))
		for _, at := range begun {
			waits[at] = true
		}
	}
	must(t, other.Rollback())
	must(t, <-done)
}

func TestAStringThatCannotBeParsedIsNotShown(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{`host=localhost password = sesame port=abc`, `host=localhost password=open\ sesame port=abc`} {
		db, err := sql.Open("pgx", dsn)
		must(t, err)
		defer db.Close()
		for what, err := range map[string]error{
			"Apply": schema.Apply(t.Context(), db, schema.Postgres, schema.Tables{}),
			"Check": schema.Check(t.Context(), db, schema.Postgres, schema.Tables{}),
		} {
			if err == nil || strings.Contains(err.Error(), "sesame") || connector.Unparsable(err) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// The tables of a schema further back on the search path would be hidden by new ones, and with them who holds what.
func TestApplyRepairsTheTablesWhereTheyAre(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	must(t, schema.Apply(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}))
	for _, statement := range []string{"CREATE SCHEMA app", "DROP TABLE sqllock_permit"} {
		_, err := db.ExecContext(t.Context(), statement)
		must(t, err)
	}
	other := again(t, db, map[string]string{"search_path": "app,public"})
	must(t, schema.Apply(t.Context(), other, schema.Postgres, schema.Tables{}))
	var made []string
	must(t, db.SelectContext(t.Context(), &made, "SELECT relname FROM pg_class WHERE relnamespace = 'app'::regnamespace"))
	if len(made) != 0 {
		t.Errorf("Apply made %v in the first schema of the search path", made)
	}
	must(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}))
}

// PostgreSQL leaves a schema that the role may not use out of the search path.
func TestTablesThatARoleMayNotSeeAreNotMadeAgain(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	exec(t, db.DB.DB, "CREATE SCHEMA app", `CREATE SCHEMA "Our app"`, "GRANT CREATE ON SCHEMA public TO pg_signal_backend")
	for path, tables := range map[string]schema.Tables{"App, public": {}, `"$user","Our app",public`: {Prefix: "Our_"}} {
		owner := again(t, db, map[string]string{"search_path": path})
		apply(t.Context(), t, owner, schema.Postgres, tables)
		other := again(t, db, map[string]string{"search_path": path, "role": "pg_signal_backend"})
		for _, err := range []error{
			schema.Check(t.Context(), other, schema.Postgres, tables),
			schema.Apply(t.Context(), other, schema.Postgres, tables),
		} {
			wants(t, err, "app", ", which this role may not use: GRANT USAGE ON SCHEMA")
			if !errors.Is(err, sqllock.ErrSchema) {
				t.Errorf("%v, want ErrSchema", err)
			}
		}
	}
	var made []string
	must(t, db.SelectContext(t.Context(), &made, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace"))
	if len(made) != 0 {
		t.Errorf("Apply made %v in another schema", made)
	}
}

// In an old database everybody may create operators and functions in the schema public. They would run as the role that
// applies.
func TestApplyUsesNothingThatOthersPutIntoTheSearchPath(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	locktest.Traps(t, db.DB.DB, "catalog/postgres.sql")
	must(t, schema.Apply(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}))
	_, err := db.ExecContext(t.Context(), "CREATE SCHEMA app; DROP TABLE sqllock_permit")
	must(t, err)
	other := again(t, db, map[string]string{"search_path": "app,public"})
	must(t, schema.Apply(t.Context(), other, schema.Postgres, schema.Tables{}))
	must(t, schema.Check(t.Context(), db.DB.DB, schema.Postgres, schema.Tables{}))
}
