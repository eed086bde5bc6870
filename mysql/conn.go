package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// conn is a dedicated session on MySQL or MariaDB.
type conn struct {
	sc       *sql.Conn
	id       int64 // CONNECTION_ID()
	database string

	getLock, releaseLock *sql.Stmt
}

var _ session.Conn[string] = (*conn)(nil)

// errNull is GET_LOCK's NULL: it ran out of memory, was killed, or hit a time limit.
var errNull = errors.New("GET_LOCK returned NULL")

// Try implements session.Conn.
func (c *conn) Try(ctx context.Context, name string) (bool, error) { return c.get(ctx, name, 0) }

// Wait implements session.Conn. A second is the shortest wait that every version keeps: MySQL
// rounds to whole seconds.
func (c *conn) Wait(ctx context.Context, name string) (bool, error) { return c.get(ctx, name, 1) }

// get calls GET_LOCK. Only the integer 1 is success.
func (c *conn) get(ctx context.Context, name string, seconds int) (bool, error) {
	var answer sql.NullInt64
	err := c.getLock.QueryRowContext(ctx, ServerName(c.database, name), seconds).Scan(&answer)
	if err == nil && !answer.Valid {
		err = errNull
	}
	return answer.Int64 == 1 && err == nil, err
}

// Unlock implements session.Conn. RELEASE_LOCK says 0 or NULL for a lock that is not ours.
func (c *conn) Unlock(ctx context.Context, name string) (bool, error) {
	var answer sql.NullInt64
	err := c.releaseLock.QueryRowContext(ctx, ServerName(c.database, name)).Scan(&answer)
	return answer.Int64 == 1 && err == nil, err
}

// Holder implements session.Conn.
func (c *conn) Holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	var id sql.NullInt64
	var host string
	err := c.sc.QueryRowContext(ctx, holderSQL, ServerName(c.database, name)).Scan(&id, &host)
	if err != nil {
		return sqllock.Holder{}, false, err
	}
	return sqllock.Holder{Session: id.Int64, Address: host}, id.Valid, nil
}

// Ping implements session.Conn.
func (c *conn) Ping(ctx context.Context) error {
	if err := c.sc.PingContext(ctx); err != nil {
		return fmt.Errorf("the connection ended: %w", err)
	}
	return nil
}

// Watch implements session.Conn. The driver has no way to read an idle connection: its end is
// seen by the heartbeat.
func (c *conn) Watch(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Broken implements session.Conn: after an answer of the server the connection still works.
func (c *conn) Broken(err error) bool {
	var answer *gomysql.MySQLError
	return !errors.As(err, &answer) && !errors.Is(err, errNull)
}

// Close implements session.Conn. The connection is closed, not given back to a pool; what
// closing says changes nothing.
func (c *conn) Close() {
	_ = c.sc.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.sc.Close()
}
