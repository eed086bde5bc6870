package pg_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock/pg"
	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkAcquireRelease takes and releases a free lock through a Locker, and in turns with
// that by the same two statements on a connection of the bare driver. "x-bare" is how many
// times as long the Locker takes.
func BenchmarkAcquireRelease(b *testing.B) {
	db := sqltest.Postgres(b)
	l := newLocker(b, db)
	conn, err := pgx.Connect(b.Context(), db.DSN)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(b.Context())

	key := pg.Key("bare")
	bare := func() error {
		var ok bool
		if err := conn.QueryRow(b.Context(), "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil {
			return err
		}
		return conn.QueryRow(b.Context(), "SELECT pg_advisory_unlock($1)", key).Scan(&ok)
	}
	locker := func() error {
		lock, err := l.TryAcquire(b.Context(), "locker")
		if err != nil {
			return err
		}
		return lock.Release(b.Context())
	}
	compare(b, locker, bare)
}

// compare runs both in alternating batches, so that what the machine does meanwhile hits both.
func compare(b *testing.B, ours, bare func() error) {
	b.Helper()
	const batch = 50
	var spent [2]time.Duration
	rounds := 0
	for b.Loop() {
		for i, f := range []func() error{ours, bare} {
			began := time.Now()
			for range batch {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
			spent[i] += time.Since(began)
		}
		rounds += batch
	}
	b.ReportMetric(0, "ns/op") // of both batches together; says nothing
	b.ReportMetric(float64(spent[0].Nanoseconds())/float64(rounds), "ns/locker")
	b.ReportMetric(float64(spent[1].Nanoseconds())/float64(rounds), "ns/bare")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "x-bare")
}
