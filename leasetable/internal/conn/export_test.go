package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// Dialer opens the connections of a Locker.
type Dialer struct{ d *dialer }

// NewDialer returns a Dialer that connects with a function.
func NewDialer(connect func(context.Context) (driver.Conn, error)) Dialer {
	return Dialer{newDialer(connect)}
}

// Hurry makes the Dialer start another attempt after this time instead of some seconds.
func (d Dialer) Hurry(after time.Duration) { d.d.hurry = func() time.Duration { return after } }

// Dial waits for a connection.
func (d Dialer) Dial(ctx context.Context) (driver.Conn, error) { return d.d.dial(ctx) }

// Close ends all attempts.
func (d Dialer) Close() { d.d.close() }

// Connected waits for a connection of a pool, like the opening of a lease.
func Connected(ctx context.Context, db *sql.DB) error {
	return dberr.Once(ctx, ConnectTimeout, (&Pool{DB: sqlx.NewDb(db, "pgx")}).Connected)
}

// OpenPools opens the two pools of a Locker, for work and for renewals. Its leases have this TTL and are trusted for sure.
func OpenPools(c driver.Connector, most Limit, sure, ttl time.Duration) (work, keep *sqlx.DB, closePools func() error) {
	p := Open(c, "", most)
	p.Renewals.loan.leases = func() RenewalNeeds { return RenewalNeeds{Sure: sure, TTL: ttl} }
	return p.Work.DB, p.Renewals.DB, p.Close
}

// MySQLConn is a connection to MySQL.
type MySQLConn interface {
	driver.ExecerContext
	driver.QueryerContext
	driver.Validator
}

// NewMySQLConn wraps a connection of a driver.
func NewMySQLConn(dc driverConn) MySQLConn { return newMySQLConn(dc) }

// InHurry is the first statement of a borrower of the connection for renewals after HurryBorrowers.
var InHurry = inHurry[schema.Postgres]

// HurryBorrowers has the borrowers of the open connection for renewals hurry, as on PostgreSQL.
func HurryBorrowers(renewals *Pool) { renewals.dialect = schema.Postgres }

// OtherConn is a connection to PostgreSQL of a driver other than pgx.
type OtherConn interface {
	driver.ExecerContext
	driver.QueryerContext
	driver.Validator
}

// NewOtherConn wraps a connection of such a driver.
func NewOtherConn(t *testing.T, dc driverConn) OtherConn {
	t.Helper()
	c, err := newPostgresConn(t.Context(), dc, new(atomic.Bool))
	if err != nil {
		t.Fatal(err)
	}
	other, ok := c.(OtherConn)
	if !ok {
		t.Fatalf("%T is not wrapped", c)
	}
	return other
}
