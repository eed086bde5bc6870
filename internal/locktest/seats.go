package locktest

import (
	"testing"

	"github.com/sqllock/sqllock/internal/pgqueue"
	"github.com/sqllock/sqllock/sqltest"
)

// TakeSeats takes all seats of a queue of PostgreSQL by hand, also those for shares, until the returned function is called. See package pgqueue.
func TakeSeats(t *testing.T, db *sqltest.Database, key int64) (giveBack func()) {
	t.Helper()
	session, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const last = pgqueue.FirstShared + pgqueue.Seats - 1
	var taken int
	err = session.GetContext(t.Context(), &taken, `SELECT count(*) FROM generate_series($1::bigint, $2::bigint) i
		WHERE pg_try_advisory_lock(hashtextextended($3::bigint::text, i))`, pgqueue.FirstSeat, last, key)
	if err != nil || taken != 2*pgqueue.Seats {
		t.Fatalf("%d seats were free, %v", taken, err)
	}
	giveBack = func() {
		_, _ = session.ExecContext(t.Context(), "SELECT pg_advisory_unlock_all()") // for who runs several tests on one server
		_ = session.Close()
	}
	t.Cleanup(func() { _ = session.Close() })
	return giveBack
}
