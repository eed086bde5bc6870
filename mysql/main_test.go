package mysql_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childDSN) != "" {
		os.Exit(child())
	}
	locktest.MostTestsWait(4)
	os.Exit(locktest.RunTests(m, func() error { return goleak.Find() }))
}

// newLocker opens a Locker on db, and closes it at the end of the test. Its session TTL does not end during a test, so
// a lock that is left held is detected.
func newLocker(tb testing.TB, db *sqltest.Database, opts ...mysql.Option) *mysql.Locker {
	tb.Helper()
	return closing(tb)(mysql.New(db.DSN, append([]mysql.Option{mysql.WithSessionTTL(time.Hour), mysql.WithLogger(nil)}, opts...)...))
}

func closing(tb testing.TB) func(*mysql.Locker, error) *mysql.Locker {
	tb.Helper()
	return func(l *mysql.Locker, err error) *mysql.Locker {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = l.Close() })
		return l
	}
}

// Helpers that the tests of all servers share.
var (
	mustTry     = locktest.MustTry[sqllock.Lock]
	mustBeHeld  = locktest.MustBeHeld
	mustAcquire = locktest.MustAcquire
	mustRelease = locktest.MustRelease
	mustLive    = locktest.MustLive
	mustBeLost  = locktest.MustBeLost
	eventually  = locktest.Eventually
)
