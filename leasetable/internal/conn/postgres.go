package conn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// lookUpByIndex makes the server find rows by their index, whatever it knows of the tables, if a connection is known to
// lead to PostgreSQL itself, and not to a pooler: the process that serves it is the one that was reported to the client
// at connect. It reports whether that is known. See Plans in chapter 7 of docs/design.md. By a warning the server says that
// a commit may not be on its standby, so warnings are on (I16). All that is one round trip, with more columns, too.
func lookUpByIndex(ctx context.Context, dc driverConn, columns ...string) (direct bool, err error) {
	server, known := serverOf(dc)
	if !known {
		return false, nil
	}
	columns = append([]string{
		"pg_catalog.set_config('enable_seqscan', 'off', false)", "pg_catalog.set_config('jit', 'off', false)",
		"pg_catalog.set_config('client_min_messages', 'warning', false)",
	}, columns...)
	text := fmt.Sprintf("SELECT %s WHERE pg_catalog.pg_backend_pid() = %d", strings.Join(columns, ", "), server.PID())
	result, err := dc.ExecContext(ctx, text, nil)
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	return rows == 1, err
}

// looksAfter is for how long a connection may have been idle before ResetSession checks its socket: less than the
// driver's second.
const looksAfter = time.Second / 2

// ResetSession implements driver.SessionResetter. It lets pgx ping the server, which costs a round trip, only if something
// has come from the server since the connection was used: see "A connection after a pause" in chapter 7 of docs/design.md.
func (c *postgresConn) ResetSession(ctx context.Context) error {
	if now := time.Now(); c.lastReset != nil && now.Sub(*c.lastReset) > looksAfter && connector.Silent(c.socket) {
		*c.lastReset = now
	}
	return c.plainConn.ResetSession(ctx)
}
