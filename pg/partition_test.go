package pg_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

func TestPartitions(t *testing.T) {
	t.Parallel()
	locktest.Partitions(t, func(t *testing.T) locktest.Parted {
		db := sqltest.Postgres(t)
		return locktest.Parted{
			Server: parse(t, db.DSN).Host,
			NewLocker: func(t *testing.T, address string) locktest.Locker {
				t.Helper()
				return closing(t)(pg.New(at(t, db, address), pg.WithSessionTTL(2*time.Second)))
			},
			Waiting:  func(t *testing.T, name string) int { t.Helper(); return waitersFor(t, db, name) },
			Sessions: func(t *testing.T) int { t.Helper(); return sessionsOn(t, db) },
		}
	})
}

// at is the DSN of db with another address.
func at(t *testing.T, db *sqltest.Database, address string) string {
	t.Helper()
	u := parse(t, db.DSN)
	u.Host = address
	return u.String()
}

func parse(t *testing.T, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u
}
