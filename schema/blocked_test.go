package schema_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

// applied is the last statement of the file of a later release.
var applied = fmt.Sprintf("INSERT INTO sqllock_version (version, lowest) VALUES (%d, %d);", schema.Version+1, schema.Version)

// waiting has, for each engine, the statement that returns when the waits for a table began, or of which sessions they are.
var waiting = map[sqltest.Engine]string{
	sqltest.EnginePostgres: `SELECT xact_start::text FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'ALTER TABLE%'`,
	sqltest.EngineMySQL:   "SELECT CONCAT(id) FROM performance_schema.processlist WHERE db = DATABASE() AND info LIKE 'ALTER TABLE%'",
	sqltest.EngineMariaDB: "SELECT CONCAT(id) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'ALTER TABLE%'",
}

func TestLocksGoOnWhileApplyWaitsForATable(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		if d == schema.SQLite {
			t.Skip("a writer has the whole file")
		}
		apply(t.Context(), t, db.DB.DB, d, schema.Tables{})
		exec(t, db.DB.DB,
			"INSERT INTO sqllock_lease (id, owner, host, pid, ttl_us, created_at, expires_at) VALUES ('1', 'a', 'b', 1, 1, now(), now())",
			"INSERT INTO sqllock_lock (name, token, acquired_at) VALUES ('guarded', 1, now()), ('other', 1, now())")
		guard, err := db.BeginTx(t.Context(), nil)
		must(t, err)
		defer func() { _ = guard.Rollback() }()
		must(t, guard.QueryRowContext(t.Context(), "SELECT token FROM sqllock_lock WHERE name = 'guarded' FOR UPDATE").Scan(new(int)))

		applies := again(t, db, nil)
		done, over, failed := make(chan error, 1), make(chan struct{}), make(chan error, 1)
		go func() {
			done <- schema.ApplyNext(t.Context(), applies, d, schema.Tables{}, "ALTER TABLE sqllock_lock ADD COLUMN of_later INT; "+applied)
		}()
		go func() { failed <- goOn(t.Context(), db.DB.DB, over) }()
		for waits := make(map[string]bool); len(waits) < 2; {
			select {
			case err := <-done:
				t.Fatalf("Apply did not wait again: %v", err)
			case err := <-failed:
				t.Fatal(err)
			default:
			}
			var begun []string
			must(t, db.SelectContext(t.Context(), &begun, waiting[db.Engine]))
			for _, wait := range begun {
				waits[wait] = true
			}
		}
		close(over)
		must(t, <-failed)
		must(t, guard.Rollback())
		must(t, <-done)
		var version int
		must(t, db.Get(&version, "SELECT MAX(version) FROM sqllock_version"))
		if version != schema.Version+1 {
			t.Errorf("the tables are version %d", version)
		}
	})
}

// goOn changes a lease, and a lock that is not guarded, again and again. It returns an error if that takes long.
func goOn(ctx context.Context, db *sql.DB, over <-chan struct{}) error {
	for {
		for _, statement := range []string{"UPDATE sqllock_lease SET renewals = renewals + 1", "UPDATE sqllock_lock SET token = token + 1 WHERE name = 'other'"} {
			soon, cancel := context.WithTimeout(ctx, 8*time.Second)
			_, err := db.ExecContext(soon, statement)
			cancel()
			if err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		select {
		case <-over:
			return nil
		default:
		}
	}
}

func TestApplyLeavesNoTimeLimitBehind(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database, d schema.Dialect) {
		limit, ok := map[schema.Dialect]string{schema.Postgres: "SHOW lock_timeout", schema.MySQL: "SELECT @@lock_wait_timeout"}[d]
		if !ok {
			t.Skip("there is no such limit")
		}
		one := again(t, db, nil)
		one.SetMaxOpenConns(1)
		var before, after string
		must(t, one.QueryRowContext(t.Context(), limit).Scan(&before))
		apply(t.Context(), t, one, d, schema.Tables{})
		must(t, one.QueryRowContext(t.Context(), limit).Scan(&after))
		if after != before {
			t.Errorf("the application's connections wait for %s after Apply, and for %s before", after, before)
		}
	})
}

func TestARoleThatDoesNotOwnTheTablesAppliesWhatIsNew(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	apply(t.Context(), t, db.DB.DB, schema.Postgres, schema.Tables{})
	exec(t, db.DB.DB, "GRANT CREATE ON SCHEMA public TO pg_signal_backend", "GRANT SELECT, INSERT ON sqllock_version TO pg_signal_backend")
	other := again(t, db, map[string]string{"role": "pg_signal_backend"})
	must(t, schema.ApplyNext(t.Context(), other, schema.Postgres, schema.Tables{}, "CREATE TABLE sqllock_later (id integer); "+applied))
	must(t, schema.Check(t.Context(), other, schema.Postgres, schema.Tables{}))
}
