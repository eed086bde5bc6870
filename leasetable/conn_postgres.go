package leasetable

import (
	"context"
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// lookUpByIndexIn has the server find rows by their index whatever it knows of the tables, if the session is served by the process with
// this id, and reports whether it is. A plan that was made while a table was empty reads all of it, and is kept for a statement
// that was prepared until the table is analyzed. What has no index it reads all the same, at a cost for which it would
// compile the plan, which takes longer. That is one round trip.
func lookUpByIndexIn(ctx context.Context, dc driver.Conn, pid uint32) (bool, error) {
	ex, ok := dc.(driver.ExecerContext)
	if !ok {
		return false, nil
	}
	text := fmt.Sprintf("SELECT set_config('enable_seqscan', 'off', false), set_config('jit', 'off', false) WHERE pg_backend_pid() = %d", pid)
	result, err := ex.ExecContext(ctx, text, nil)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// looksAfter is for how long a connection may have been idle that is not looked at: less than the driver's second.
const looksAfter = time.Second / 2

// ResetSession implements driver.SessionResetter. When a connection was idle for a second, pgx asks the server for a sign of life, and a
// statement takes two round trips. Here it only looks whether something has come from the server meanwhile, as the end of the
// connection would, and asks then. A connection that ends later is one that ends under a statement.
func (c *postgresConn) ResetSession(ctx context.Context) error {
	if now := time.Now(); c.lastReset != nil && now.Sub(*c.lastReset) > looksAfter && connector.Silent(c.socket) {
		*c.lastReset = now
	}
	return c.pgxDriverConn.ResetSession(ctx)
}
