package locktest

import (
	"database/sql"
	"testing"

	"github.com/sqllock/sqllock/internal/pgqueue"
)

// TakeSeats takes all seats of a queue of PostgreSQL by hand, also those for shares, until the returned function is called.
// See package pgqueue.
func TakeSeats(t *testing.T, db *sql.DB, key int64) (giveBack func()) {
	t.Helper()
	session, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	const last = pgqueue.FirstShared + pgqueue.Seats - 1
	var taken int
	err = session.QueryRowContext(t.Context(), `SELECT count(*) FROM generate_series($1::bigint, $2::bigint) i
		WHERE pg_try_advisory_lock(hashtextextended($3::bigint::text, i))`, pgqueue.FirstSeat, last, key).Scan(&taken)
	if err != nil || taken != 2*pgqueue.Seats {
		t.Fatalf("%d seats were free, %v", taken, err)
	}
	return func() {
		if _, err := session.ExecContext(t.Context(), "SELECT pg_advisory_unlock_all()"); err != nil {
			t.Error(err)
		}
	}
}
