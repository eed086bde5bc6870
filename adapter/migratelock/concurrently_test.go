package migratelock_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database"
	pgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"

	"github.com/sqllock/sqllock/adapter/migratelock"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

const (
	dsnEnv     = "SQLLOCK_TEST_MIGRATE"
	ownLockEnv = "SQLLOCK_TEST_MIGRATE_OWN_LOCK"
)

// concurrently has an index that is built while another process waits for the lock.
var concurrently = []string{
	"CREATE TABLE orders AS SELECT generate_series(1, 1000) AS id",
	`DO $$ BEGIN
		FOR i IN 1..6000 LOOP
			IF EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
				AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) THEN RETURN; END IF;
			PERFORM pg_sleep(0.01);
		END LOOP;
		RAISE 'nobody waits for the lock';
	END $$`,
	"CREATE INDEX CONCURRENTLY orders_id ON orders (id)",
}

// migrateAsChild migrates, as a process of its own.
func migrateAsChild(dsn string, ownLock bool) error {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	locker, err := pg.FromDB(db)
	if err != nil {
		return err
	}
	defer locker.Close()
	var d database.Driver
	d, err = pgx.WithInstance(db, &pgx.Config{})
	if err != nil {
		return err
	}
	if !ownLock {
		d = migratelock.Wrap(d, locker, "migrations")
	}
	m, err := migrateOf(d, concurrently...)
	if err != nil {
		return err
	}
	if err := m.Up(); !errors.Is(err, migrate.ErrNoChange) {
		return err
	}
	return nil
}

// twoProcesses migrates db by two processes, and returns what they have written to stderr.
func twoProcesses(ctx context.Context, db *sqltest.Database, env ...string) (string, error) {
	var (
		wg   sync.WaitGroup
		errs [2]error
		out  [2][]byte
	)
	for i := range out {
		wg.Go(func() {
			cmd := exec.CommandContext(ctx, os.Args[0])
			cmd.Env = append(append(os.Environ(), dsnEnv+"="+db.DSN), env...)
			out[i], errs[i] = cmd.CombinedOutput()
		})
	}
	wg.Wait()
	return string(out[0]) + string(out[1]), errors.Join(errs[:]...)
}

// golang-migrate/migrate#960.
func TestAnIndexIsBuiltWhileAnotherProcessWaits(t *testing.T) {
	t.Parallel()
	db := sqltest.Postgres(t)
	if out, err := twoProcesses(t.Context(), db); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var valid bool
	if err := db.GetContext(t.Context(), &valid, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'orders_id'::regclass"); err != nil || !valid {
		t.Errorf("the index is valid: %t, %v", valid, err)
	}
}

// The control.
func TestWithMigratesOwnLockAnIndexIsADeadlock(t *testing.T) {
	t.Parallel()
	out, err := twoProcesses(t.Context(), sqltest.Postgres(t), ownLockEnv+"=1")
	if err == nil || !strings.Contains(out, "deadlock detected") {
		t.Errorf("with migrate's own lock: %v\n%s", err, out)
	}
}
