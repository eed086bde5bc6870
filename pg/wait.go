package pg

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/pgqueue"
	"github.com/sqllock/sqllock/internal/session"
)

// Wait implements session.Conn. The statements of a slice go in one round trip and make one transaction, which lasts no
// longer than the slice (I47). In a long wait it takes a seat before that, or sleeps.
//
// A waiter first waits for the gate, which is another key, and keeps the gate between slices until it has the lock. So
// the holder of the gate is the next to get the lock, and a share cannot pass a waiter for the exclusive lock. A waiter
// at the gate loses its place in the queue with each slice, so longer slices have better chances.
func (c *conn) Wait(ctx context.Context, op *session.Op[key], waited, left time.Duration) error {
	if waited > seatAfter && c.seat == "" && (op.Shared || !c.gated) {
		if err := c.takeSeat(ctx, op); err != nil {
			return err
		}
		d := min(jitter.Around(asleep), leftOf(ctx, left), left-2*pgqueue.BeforeLook)
		if c.seat == "" && d > 0 {
			return c.sleep(ctx, d)
		}
	}
	var batch pgconn.Batch
	slice, withGate := sliceOf(waited, leftOf(ctx, left), c.seat != "", c.gated)
	number := func(n int64) []byte { return strconv.AppendInt(nil, n, 10) }
	batch.ExecPrepared(waitBeginName, [][]byte{
		number(op.Key.n), number(slice.Milliseconds()), []byte(c.waitIdle), number(withGate.Milliseconds()),
		[]byte(c.seat),
	}, nil, nil)
	if kind := (waitKind{kindOf(op), c.gated}); kind == commonWait {
		batch.ExecPrepared(waitName, nil, nil, nil)
	} else {
		batch.ExecParams(waits[kind], nil, nil, nil, nil)
	}
	batch.ExecPrepared(waitEndName, nil, nil, nil)
	results, err := c.pc.PgConn().ExecBatch(ctx, &batch).ReadAll()
	if err != nil {
		return withLimit(err)
	}
	row, err := rowOf(6, results...)
	if err != nil {
		return err
	}
	op.Done, c.gated, c.seat = string(row[0]) == "yes", string(row[1]) == "true", string(row[2])
	if op.Done {
		c.seat = ""
	}
	return c.mustBe(row[3:])
}

// leftOf returns how long a slice may take at most: the rest of the time of its ctx is for the answer.
func leftOf(ctx context.Context, left time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(deadline)/2)
	}
	return left
}

const (
	// seatAfter is after how long a waiter needs a seat to stand in the server's queue; see package pgqueue. From about then on
	// its slices last longer than pgqueue.BeforeLook.
	seatAfter = 5 * time.Second
	// asleep is for about how long a waiter without a seat sleeps, and 5 s at most; see leftOf. Before its caller leaves, it
	// stands for a moment.
	asleep = 4 * time.Second
)

// takeSeat takes a seat for a wait for the key of op if one is free. The exclusive waiter with the gate is alone in its queue,
// and needs none.
func (c *conn) takeSeat(ctx context.Context, op *session.Op[key]) error {
	text := seatSQL
	if op.Shared {
		text = shareSeatSQL
	}
	result := c.pc.PgConn().ExecParams(ctx, text, [][]byte{strconv.AppendInt(nil, op.Key.n, 10), []byte(c.idle)}, nil, nil, nil).Read()
	if result.Err != nil {
		return withLimit(result.Err)
	}
	row, err := rowOf(4, result)
	if err != nil {
		return err
	}
	c.seat = string(row[0])
	return c.mustBe(row[1:])
}

// sleep returns after d, or when the connection ends. A sleeper is in nobody's way: it gives back its gate, which is shared.
func (c *conn) sleep(ctx context.Context, d time.Duration) error {
	if c.gated {
		if err := c.Forget(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return c.Watch(ctx)
}

// waitKind is a kind of lock, and whether the session has its gate.
type waitKind struct {
	kind  int64
	gated bool
}

// commonWait is the kind whose statement is prepared.
var commonWait = waitKind{kindTry, false}

// waits has the statement of wait.sql for each kind of wait.
var waits = func() map[waitKind]string {
	all := make(map[waitKind]string)
	for _, kind := range []int64{0, kindShared, kindPair, kindShared + kindPair} {
		for _, gated := range []bool{false, true} {
			k := waitKind{kindTry + kind, gated}
			all[k] = k.text()
		}
	}
	return all
}()

func (k waitKind) text() string {
	text := waitSQL
	if k.gated {
		text = strings.Replace(text, "PERFORM pg_advisory_lock(gate);", "PERFORM 1;", 1)
	}
	if k.kind&kindShared != 0 {
		text = toShare.Replace(text)
	}
	if k.kind&kindPair != 0 {
		text = toPair.Replace(text)
	}
	return toSettings.Replace(text)
}

var (
	toShare    = strings.NewReplacer("_lock(", "_lock_shared(", "_unlock(", "_unlock_shared(")
	toPair     = strings.NewReplacer("(key)", "((key >> 32)::int, (key << 32 >> 32)::int)", "(gate)", "((gate >> 32)::int, (gate << 32 >> 32)::int)")
	toSettings = strings.NewReplacer("(key", "(current_setting('sqllock.key')::bigint", "(gate", "(current_setting('sqllock.gate')::bigint")
)

// sliceOf returns the length of a slice of a wait that has taken so long already: from 0.6 s for a new one to 1.75 s
// after 18 seconds, and up to an eighth more or less, so that waits do not fall into step (I47). Without a seat or the gate
// it ends before the server looks for a deadlock. No slice is longer than left, or shorter than 1 ms. withGate is its length
// if it gets the gate.
//
// A program that holds the key by hand, and runs CREATE INDEX CONCURRENTLY on the same session, waits for the slice, which
// waits for the program. Once one of them has waited for a second (deadlock_timeout, by default), the server looks for a
// deadlock, and ends that one's wait. It must not be the program's. A new slice is over by then. A longer one is looked at
// first, or has less than a second left when the program begins to wait. A slice that gets the gate waits anew and is
// looked at later: so it ends within pgqueue.BeforeLook. Not covered is a look at a slice at the gate while the waiter
// that has the gate is between two of its slices.
func sliceOf(waited, left time.Duration, seated, gated bool) (slice, withGate time.Duration) {
	slice = min(600*time.Millisecond+waited/16, 1750*time.Millisecond)
	slice = slice*7/8 + rand.N(slice/4) //nolint:gosec // jitter
	if !seated && !gated {
		slice = min(slice, pgqueue.BeforeLook)
	}
	slice = max(min(slice, left), time.Millisecond)
	if gated { // since an earlier slice
		return slice, slice
	}
	return slice, min(slice, pgqueue.BeforeLook)
}

func (c *conn) Forget(ctx context.Context) error {
	c.gated, c.seat = false, ""
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
