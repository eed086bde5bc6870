package pg

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
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
	slice := sliceOf(waited)
	if deadline, ok := ctx.Deadline(); ok { // of a session with a short TTL
		slice = max(min(slice, time.Until(deadline)/2), time.Millisecond)
	}
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	params := [][]byte{number(op.Key.n), number(slice.Milliseconds()), strconv.AppendBool(nil, c.gated), []byte(c.waitIdle)}
	batch.ExecParams(waitBeginSQL, params, nil, nil, nil)
	batch.ExecParams(waits[kindOf(op)], nil, nil, nil, nil)
	batch.ExecParams(waitEndSQL, nil, nil, nil, nil)
	results, err := c.pc.PgConn().ExecBatch(ctx, &batch).ReadAll()
	if err != nil {
		return withLimit(err)
	}
	last := results[len(results)-1].Rows
	if len(last) != 1 {
		return fmt.Errorf("%d answers to a wait", len(last))
	}
	op.Done, c.gated = string(last[0][0]) == "yes", string(last[0][1]) == "true"
	return nil
}

// waits has the statement of wait.sql for each kind of lock.
var waits = map[int64]string{
	kindTry:                         waitSQL,
	kindTry + kindShared:            toShare.Replace(waitSQL),
	kindTry + kindPair:              toPair.Replace(waitSQL),
	kindTry + kindShared + kindPair: toPair.Replace(toShare.Replace(waitSQL)),
}

var (
	toShare = strings.NewReplacer("_lock(", "_lock_shared(", "_unlock(", "_unlock_shared(")
	toPair  = strings.NewReplacer("lock(key)", "lock((key >> 32)::int, (key << 32 >> 32)::int)", "lock(gate)", "lock((gate >> 32)::int, (gate << 32 >> 32)::int)",
		"shared(key)", "shared((key >> 32)::int, (key << 32 >> 32)::int)", "shared(gate)", "shared((gate >> 32)::int, (gate << 32 >> 32)::int)")
)

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
	if !c.Keeps() {
		return nil
	}
	return c.Keep(ctx)
}

// waitTTL returns the TTL of a session that waits. It is short, because between two slices the session is in the way of
// others. Who got the lock by a wait loses it if it stalls for 5/6 of that before Keep.
func (l *Locker) waitTTL() time.Duration { return min(3*time.Second, l.ttl) }

// Keep has the server keep the session for the session TTL again.
func (c *conn) Keep(ctx context.Context) error {
	return c.pc.PgConn().ExecParams(ctx, idleSQL, [][]byte{[]byte(c.idle)}, nil, nil, nil).Read().Err
}

// Keeps reports whether the server has idle_session_timeout.
func (c *conn) Keeps() bool { return c.idle != "" }
