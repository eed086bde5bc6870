package migratelock_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock/internal/locktest"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv(dsnEnv); dsn != "" {
		if err := migrateAsChild(dsn, os.Getenv(ownLockEnv) != ""); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	locktest.MostTestsWait(3)
	// migrate reads the next migration ahead, and leaves the goroutine that does it when the one before has failed.
	readsAhead := goleak.IgnoreAnyFunction("github.com/golang-migrate/migrate/v4.(*Migration).Buffer")
	os.Exit(locktest.RunTests(m, func() error { return goleak.Find(readsAhead) }))
}
