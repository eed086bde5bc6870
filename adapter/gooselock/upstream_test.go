package gooselock_test

import (
	"context"
	"database/sql"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock/locktesting"

	"github.com/sqllock/sqllock/adapter/gooselock"
	"github.com/sqllock/sqllock/internal/adaptertest"
	"github.com/sqllock/sqllock/sqltest"
)

// goose's own suite is to fail without a lock. So its three migrations take 300 ms each, and newProvider lets nothing but
// the lock bring the providers in order.
func TestOneProviderMigrates(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			t.Helper()
			return newProvider(t, p, threeMigrations(), goose.WithLocker(gooselock.New(p.Locker(t), "migrations")))
		})
	})
}

func TestOneProviderMigratesWithASessionLocker(t *testing.T) {
	t.Parallel()
	adaptertest.Everywhere(t, func(t *testing.T, p adaptertest.Place) {
		locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
			t.Helper()
			return newProvider(t, p, threeMigrations(), goose.WithSessionLocker(gooselock.New(p.Locker(t), "migrations")))
		})
	})
}

// controlEnv makes the test below the one that has to fail, in a process of its own.
const controlEnv = "SQLLOCK_TEST_WITHOUT_A_LOCK"

// The control: with a locker that does nothing, goose's suite fails on every engine, for the right reason.
func TestTheSuiteFailsWithoutALock(t *testing.T) {
	t.Parallel()
	for _, engine := range []sqltest.Engine{
		sqltest.EnginePostgres, sqltest.EngineMySQL, sqltest.EngineMariaDB, sqltest.EngineSQLite,
	} {
		t.Run(string(engine), func(t *testing.T) {
			t.Parallel()
			p := adaptertest.At(t, engine, false)
			if os.Getenv(controlEnv) != "" {
				locktesting.TestProviderLocking(t, func(t *testing.T) *goose.Provider {
					t.Helper()
					return newProvider(t, p, threeMigrations(), goose.WithLocker(nothing{}))
				})
				return
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
			cmd.Env = append(os.Environ(), controlEnv+"=1")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "exactly one provider should apply migrations") {
				t.Errorf("without a lock the suite is content: %v\n%s", err, out)
			}
		})
	}
}

// nothing is a locker that does nothing.
type nothing struct{}

func (nothing) Lock(context.Context, *sql.DB) error   { return nil }
func (nothing) Unlock(context.Context, *sql.DB) error { return nil }
