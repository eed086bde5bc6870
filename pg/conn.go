package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// conn is a dedicated session on PostgreSQL.
type conn struct{ pc *pgx.Conn }

var _ session.Conn[int64] = (*conn)(nil)

// Try implements session.Conn.
func (c *conn) Try(ctx context.Context, key int64) (taken bool, err error) {
	err = c.pc.QueryRow(ctx, trySQL, key).Scan(&taken)
	return taken, err
}

// Unlock implements session.Conn.
func (c *conn) Unlock(ctx context.Context, key int64) (owned bool, err error) {
	err = c.pc.QueryRow(ctx, unlockSQL, key).Scan(&owned)
	return owned, err
}

// Wait implements session.Conn. Its three statements go in one round trip and make one
// transaction, which lasts no longer than the slice.
func (c *conn) Wait(ctx context.Context, key int64) (bool, error) {
	var batch pgconn.Batch
	batch.ExecParams(waitBeginSQL, [][]byte{[]byte(strconv.FormatInt(key, 10))}, nil, nil, nil)
	batch.ExecParams(waitSQL, nil, nil, nil, nil)
	batch.ExecParams(waitEndSQL, nil, nil, nil, nil)
	results, err := c.pc.PgConn().ExecBatch(ctx, &batch).ReadAll()
	if err != nil {
		return false, err
	}
	last := results[len(results)-1].Rows
	return len(last) == 1 && string(last[0][0]) == "yes", nil
}

// Holder implements session.Conn.
func (c *conn) Holder(ctx context.Context, key int64) (sqllock.Holder, bool, error) {
	var (
		holder sqllock.Holder
		owner  string
		since  *time.Time
	)
	err := c.pc.QueryRow(ctx, holderSQL, key).Scan(&holder.Session, &owner, &holder.Address, &since)
	if errors.Is(err, pgx.ErrNoRows) {
		return sqllock.Holder{}, false, nil
	}
	if err != nil {
		return sqllock.Holder{}, false, err
	}
	holder.Owner = strings.TrimPrefix(owner, "sqllock/")
	if since != nil {
		holder.Since = *since
	}
	return holder, true, nil
}

// Ping implements session.Conn.
func (c *conn) Ping(ctx context.Context) error { return c.pc.Ping(ctx) }

// Watch implements session.Conn: the server says goodbye on an idle connection, or its end is
// read, and pgx leaves the connection usable when ctx ends first.
func (c *conn) Watch(ctx context.Context) error {
	for {
		_, err := c.pc.WaitForNotification(ctx)
		if ctx.Err() != nil && !c.pc.IsClosed() {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the connection ended: %w", err)
		}
	}
}

// Broken implements session.Conn.
func (c *conn) Broken(error) bool { return c.pc.IsClosed() }

// Close implements session.Conn.
func (c *conn) Close() { closeConn(c.pc) }

// closeConn says goodbye, within a second, and closes the connection. After a statement that was
// cut off pgx goes on closing in the background, for up to 15 seconds, unless the socket is
// taken away from it.
func closeConn(pc *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = pc.Close(ctx) // what it says changes nothing
	select {
	case <-pc.PgConn().CleanupDone():
	case <-ctx.Done():
		_ = pc.PgConn().Conn().Close() // what it says changes nothing
	}
}
