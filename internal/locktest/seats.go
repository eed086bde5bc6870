package locktest

import (
	"testing"

	"github.com/sqllock/sqllock/internal/pgqueue"
	"github.com/sqllock/sqllock/sqltest"
)

// TakeSeats takes all seats of a queue of PostgreSQL by hand, until the returned function is called. See package pgqueue.
func TakeSeats(t *testing.T, db *sqltest.Database, key int64) (giveBack func()) {
	t.Helper()
	session, err := db.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var taken int
	err = session.GetContext(t.Context(), &taken, `SELECT count(*) FROM generate_series($1::bigint, $2::bigint) i
		WHERE pg_try_advisory_lock(hashint8extended($3::bigint, i))`, pgqueue.FirstSeat, pgqueue.LastSeat, key)
	if err != nil || taken != pgqueue.LastSeat-pgqueue.FirstSeat+1 {
		t.Fatalf("%d seats were free, %v", taken, err)
	}
	giveBack = func() {
		_, _ = session.ExecContext(t.Context(), "SELECT pg_advisory_unlock_all()") // for who runs several tests on one server
		_ = session.Close()
	}
	t.Cleanup(func() { _ = session.Close() })
	return giveBack
}
