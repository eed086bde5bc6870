package mysql_test

import (
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock/sqltest"
)

// BenchmarkAcquireRelease takes and releases a free lock through a Locker, and in turns with
// that by the same two statements, prepared, on a connection of the bare driver. "x-bare" is how
// many times as long the Locker takes.
func BenchmarkAcquireRelease(b *testing.B) {
	for name, open := range map[string]func(sqltest.TB) *sqltest.Database{"MySQL": sqltest.MySQL, "MariaDB": sqltest.MariaDB} {
		b.Run(name, func(b *testing.B) { benchmarkOn(b, open(b)) })
	}
}

func benchmarkOn(b *testing.B, db *sqltest.Database) {
	b.Helper()
	l := newLocker(b, db)
	conn, err := db.Conn(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	get, errGet := conn.PrepareContext(b.Context(), "SELECT GET_LOCK(?, 0)")
	release, errRelease := conn.PrepareContext(b.Context(), "SELECT RELEASE_LOCK(?)")
	if err := errors.Join(errGet, errRelease); err != nil {
		b.Fatal(err)
	}
	defer get.Close()
	defer release.Close()

	bare := func() error {
		for _, s := range []*sql.Stmt{get, release} {
			var ok sql.NullInt64
			if err := s.QueryRowContext(b.Context(), "bare").Scan(&ok); err != nil {
				return err
			}
		}
		return nil
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
