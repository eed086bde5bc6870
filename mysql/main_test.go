package mysql_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/mysql"
	"github.com/sqllock/sqllock/sqltest"
)

// soon bounds everything that has to happen.
const soon = 15 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(childDSN) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

// newLocker opens a Locker on db and closes it at the end of the test.
func newLocker(tb testing.TB, db *sqltest.Database, opts ...mysql.Option) *mysql.Locker {
	tb.Helper()
	return closing(tb)(mysql.New(db.DSN, opts...))
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

func mustTry(t *testing.T, l sqllock.Locker, name string) sqllock.Lock {
	t.Helper()
	lock, err := l.TryAcquire(t.Context(), name)
	if err != nil {
		t.Fatalf("TryAcquire: %v", err)
	}
	return lock
}

func mustBeHeld(t *testing.T, l sqllock.Locker, name string) {
	t.Helper()
	if _, err := l.TryAcquire(t.Context(), name); !errors.Is(err, sqllock.ErrHeld) {
		t.Fatalf("TryAcquire of a held lock: %v", err)
	}
}

// mustAcquire waits for a lock, but not for ever.
func mustAcquire(t *testing.T, l sqllock.Locker, name string) sqllock.Lock {
	t.Helper()
	ctx, cancel := bounded(t)
	defer cancel()
	lock, err := l.Acquire(ctx, name)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return lock
}

func mustRelease(t *testing.T, lock sqllock.Lock) {
	t.Helper()
	if err := lock.Release(t.Context()); err != nil {
		t.Fatalf("Release: %v", err)
	}
}
