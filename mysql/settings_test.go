package mysql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// Settings that are meant for the application's statements, and limits shorter than a wait is.
func TestSettingsInTheDSNDoNotHurt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *sqltest.Database) {
		t.Helper()
		limit := "max_execution_time=200"
		if db.Engine == sqltest.EngineMariaDB {
			limit = "max_statement_time=0.2"
		}
		for _, setting := range []string{
			limit, "autocommit=0", "wait_timeout=1", "lock_wait_timeout=1", "innodb_lock_wait_timeout=1",
			"readTimeout=300ms&writeTimeout=300ms", "interpolateParams=true", "clientFoundRows=true", "multiStatements=true",
			"sql_mode=%27ANSI%27", "parseTime=true", "collation=utf8mb4_bin",
		} {
			t.Run(setting, func(t *testing.T) {
				t.Parallel()
				separator := "?"
				if strings.Contains(db.DSN, "?") {
					separator = "&"
				}
				dsn := db.DSN + separator + setting
				holdAndWait(t, closing(t)(mysql.New(dsn)), closing(t)(mysql.New(dsn)), setting)
			})
		}
	})
}

func TestAGlobalTimeLimitDoesNotHurt(t *testing.T) {
	t.Parallel()
	for engine, limit := range map[sqltest.Engine]string{
		sqltest.EngineMySQL:   "SET GLOBAL max_execution_time = 200",
		sqltest.EngineMariaDB: "SET GLOBAL max_statement_time = 0.2",
	} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			db := sqltest.Start(t, engine).Database(t)
			statement(t, db, limit)
			holdAndWait(t, newLocker(t, db), newLocker(t, db), "a")
		})
	}
}

// holdAndWait holds a lock for longer than the limits of these tests while another waits for it.
func holdAndWait(t *testing.T, holder, waiter sqllock.Locker, name string) {
	t.Helper()
	lock := mustTry(t, holder, name)
	mustBeHeld(t, waiter, name)
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := waiter.Acquire(ctx, name); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sqllock.ErrHeld) {
		t.Fatalf("Acquire of a held lock = %v; want that its context ended", err)
	}
	mustLive(t, lock)
	mustRelease(t, lock)
	mustRelease(t, mustAcquire(t, waiter, name))
}

func TestASessionTTLThatIsTooShortIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := mysql.New("user@tcp(localhost)/any", mysql.WithSessionTTL(3*time.Second-1)); err == nil {
		t.Error("no error")
	}
}
