package leasetable_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"go.uber.org/goleak"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
	"github.com/sqllock/sqllock/sqltest"
)

func TestMain(m *testing.M) {
	if os.Getenv(holderEnv) != "" {
		holdForParent()
		return
	}
	if os.Getenv(contenderEnv) != "" {
		os.Exit(contend())
	}
	if os.Getenv(jobEnv) != "" {
		if err := doJob(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	locktest.MostTestsWait(6)
	os.Exit(locktest.RunTests(m, func() error { return goleak.Find() }))
}

// onEvery runs a test on an empty database of every kind, with the lease tables.
func onEvery(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	on(t, databases, test)
}

// onServers runs a test like onEvery, without SQLite.
func onServers(t *testing.T, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	servers := maps.Clone(databases)
	delete(servers, "SQLite")
	on(t, servers, test)
}

var databases = map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database{
	"PostgreSQL": tables.Postgres, "MySQL": tables.MySQL, "MariaDB": tables.MariaDB, "SQLite": tables.SQLite,
}

// tables is a database with the lease tables, which are made once.
var tables = sqltest.Migrated(printed(), func(ctx context.Context, db *sqltest.Database) error {
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		return err
	}
	return schema.Apply(ctx, db.DB.DB, d, schema.Tables{})
})

// printed is the SQL of the tables in every dialect.
func printed() string {
	var text strings.Builder
	for _, d := range []schema.Dialect{schema.Postgres, schema.MySQL, schema.SQLite} {
		if err := schema.Print(&text, d, schema.Tables{}); err != nil {
			panic(err)
		}
	}
	return text.String()
}

func on(t *testing.T, databases map[string]func(sqltest.TB, ...sqltest.Option) *sqltest.Database, test func(t *testing.T, db *sqltest.Database)) {
	t.Helper()
	for name, open := range databases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func withTables(t *testing.T, db *sqltest.Database) *sqltest.Database {
	t.Helper()
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Apply(t.Context(), db.DB.DB, d, schema.Tables{}); err != nil {
		t.Fatal(err)
	}
	return db
}

// survivingTTL is a TTL for locks that must survive some renewals, even on a machine that stops for some seconds: less than
// half a TTL.
const survivingTTL = 18 * time.Second

// fromDB opens a Locker, also with a driver of the tests.
func fromDB(db *sqlx.DB, opts ...leasetable.Option) (*leasetable.Locker, error) {
	d, err := schema.DialectOf(db.DriverName())
	if err != nil {
		return nil, err
	}
	return leasetable.FromDB(db.DB, append([]leasetable.Option{leasetable.WithDialect(d), leasetable.WithLogger(nil)}, opts...)...)
}

// anyKind is a Locker for the suites that test all backends.
type anyKind struct {
	sqllock.Locker
	io.Closer
}

func ofAnyKind(l *leasetable.Locker) locktest.Locker { return anyKind{sqllock.AnyKind(l), l} }

// TryAcquireAll implements the optional interface of sqllock.AcquireAll.
func (k anyKind) TryAcquireAll(ctx context.Context, names []string, opts ...sqllock.Option) ([]sqllock.Lock, error) {
	return k.Locker.(interface {
		TryAcquireAll(ctx context.Context, names []string, opts ...sqllock.Option) ([]sqllock.Lock, error)
	}).TryAcquireAll(ctx, names, opts...)
}

// newLocker opens a Locker that is closed at the end of the test.
func newLocker(t *testing.T, db *sqlx.DB, opts ...leasetable.Option) *leasetable.Locker {
	t.Helper()
	l, err := fromDB(db, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

// take acquires a name that must be free, or become free soon.
func take(t *testing.T, l *leasetable.Locker, name string, opts ...sqllock.Option) *leasetable.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second) // less than the leases of a minute that some tests have
	defer cancel()
	lock, err := l.Acquire(ctx, name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// await waits for the end of a lock.
func await(t *testing.T, lease *leasetable.Lease) error {
	t.Helper()
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	select {
	case <-lease.Context().Done():
		return context.Cause(lease.Context())
	case <-timer.C:
		t.Fatalf("the lock %q is still held after a minute", lease.Name())
		return nil
	}
}

// mustBeToldWithin waits for the deadline of a lock whose renewals are no longer confirmed. It is at least ⅙ TTL before
// the server could let another client acquire the lock, a TTL after now.
func mustBeToldWithin(t *testing.T, lease *leasetable.Lease, ttl time.Duration) {
	t.Helper()
	locktest.MustEndWithin(t, lease, ttl)
	if cause := await(t, lease); !errors.Is(cause, sqllock.ErrExpired) {
		t.Errorf("the lock ended with %v", cause)
	}
}

func run(t *testing.T, db *sqltest.Database, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), db.Rebind(statement), args...); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) { conform(t, db, db.DB) })
}

// conform runs the conformance suite on a database that Lockers reach through a pool.
func conform(t *testing.T, db *sqltest.Database, pool *sqlx.DB) {
	t.Helper()
	var mu sync.Mutex
	var lockers []*leasetable.Locker // guarded by mu
	locktest.Exercise(t, func(t *testing.T) locktest.Locker {
		t.Helper()
		l, err := fromDB(pool, leasetable.WithTTL(time.Hour)) // so a lock that is left held does not become free by expiry
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		lockers = append(lockers, l)
		return ofAnyKind(l)
	}, locktest.Options{
		Lose: func(t *testing.T, name string) {
			t.Helper()
			id := leaseOf(t, db, name)
			run(t, db, "DELETE FROM sqllock_lease WHERE id = ?", id)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range lockers { // their next renewal is far away
				leasetable.RenewLease(t.Context(), l, id)
			}
		},
	})
}

func TestCounter(t *testing.T) {
	t.Parallel()
	onEvery(t, func(t *testing.T, db *sqltest.Database) {
		locktest.Counter(t, db.DB.DB, func(t *testing.T) locktest.Locker {
			t.Helper()
			l, err := leasetable.FromDB(db.DB.DB)
			if err != nil {
				t.Fatal(err)
			}
			return ofAnyKind(l)
		})
	})
}
