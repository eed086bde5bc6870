package pg_test

import (
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// soon bounds every wait for an event that must happen.
const soon = time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(childDSN) != "" {
		os.Exit(child())
	}
	locktest.MostTestsWait(3)
	os.Exit(locktest.RunTests(m, func() error { return goleak.Find() }))
}

// newLocker opens a Locker on db, and closes it at the end of the test. Its session TTL does not end during a test, so
// a lock that is left held is detected.
func newLocker(tb testing.TB, db *sqltest.Database, opts ...pg.Option) *pg.Locker {
	tb.Helper()
	return closing(tb)(pg.New(db.DSN, append([]pg.Option{pg.WithSessionTTL(time.Hour), pg.WithLogger(nil)}, opts...)...))
}

func closing(tb testing.TB) func(*pg.Locker, error) *pg.Locker {
	tb.Helper()
	return func(l *pg.Locker, err error) *pg.Locker {
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
