package pg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock/internal/session"
)

// Wait implements session.Conn. Its statements go in one round trip and make one transaction, which lasts no longer
// than the slice (I47).
//
// A waiter first waits for the gate, which is another key, and keeps the gate between slices until it has the lock. So
// the holder of the gate is the next to get the lock, and a share cannot pass a waiter for the exclusive lock. A waiter
// at the gate loses its place in the queue with each slice, so longer slices have better chances.
func (c *conn) Wait(ctx context.Context, op *session.Op[key], waited time.Duration) error {
	var batch pgconn.Batch
	if c.idle != "" {
		batch.ExecParams(idleSQL, [][]byte{[]byte(waitIdle)}, nil, nil, nil)
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	params := [][]byte{number(kindOf(op)), number(op.Key.n), number(sliceOf(waited).Milliseconds()), strconv.AppendBool(nil, c.gated)}
	batch.ExecParams(waitBeginSQL, params, nil, nil, nil)
	batch.ExecParams(waitSQL, nil, nil, nil, nil)
	batch.ExecParams(waitEndSQL, nil, nil, nil, nil)
	results, err := c.pc.PgConn().ExecBatch(ctx, &batch).ReadAll()
	if err != nil {
		return withLimit(err)
	}
	last := results[len(results)-1].Rows
	if len(last) != 1 {
		return fmt.Errorf("%d answers to a wait", len(last))
	}
	taken := string(last[0][0]) == "yes"
	if c.gated = string(last[0][1]) == "true"; taken {
		err = c.keepIdle(ctx)
	}
	op.Done = taken && err == nil
	return err
}

// sliceOf returns the length of a slice of a wait that has taken so long already: from 150 ms for a new one to 1.2 s
// after ten seconds, and up to an eighth more or less, so that waits do not fall into step (I47).
func sliceOf(waited time.Duration) time.Duration {
	slice := min(150*time.Millisecond+waited/8, 1200*time.Millisecond)
	return slice*7/8 + rand.N(slice/4) //nolint:gosec // jitter
}

// Forget implements session.Conn.
func (c *conn) Forget(ctx context.Context) error {
	c.gated = false
	if _, err := c.pc.PgConn().Exec(ctx, forgetSQL).ReadAll(); err != nil {
		return err
	}
	return c.keepIdle(ctx)
}

// waitIdle is how long the server keeps a waiting session that is silent between two slices: at the gate of a lock it
// blocks others.
const waitIdle = "1s"

// keepIdle replaces waitIdle by the session TTL. Until the server has answered, the session cannot be trusted with a
// lock.
func (c *conn) keepIdle(ctx context.Context) error {
	if c.idle == "" {
		return nil
	}
	return c.pc.PgConn().ExecParams(ctx, idleSQL, [][]byte{[]byte(c.idle)}, nil, nil, nil).Read().Err
}
