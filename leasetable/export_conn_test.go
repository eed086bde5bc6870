package leasetable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"github.com/jmoiron/sqlx"
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
	return once(ctx, connectTimeout, (&pool{DB: sqlx.NewDb(db, "pgx")}).connected)
}

// OpenPools opens the two pools of a Locker, for work and for renewals. Its leases have this TTL and are trusted for sure.
func OpenPools(c driver.Connector, sure, ttl time.Duration) (work, keep *sqlx.DB, closePools func() error) {
	p := openPools(c, "")
	p.renewals.loan.leases = func() renewalNeeds { return renewalNeeds{sure: sure, ttl: ttl} }
	return p.work.DB, p.renewals.DB, p.close
}
