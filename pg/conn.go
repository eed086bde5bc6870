package pg

import (
	"context"
	encoding "encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

// conn is a session of a Locker on PostgreSQL.
type conn struct {
	pc       *pgx.Conn
	pid      string      // the process id of the backend
	database int64       // its oid
	cut      atomic.Bool // Cut was called
	broken   bool        // an answer is missing: the next one on the connection does not answer the next request

	request request // what Run has sent
	rows    int     // of the answer so far
	said    error   // the server's error instead

	idle     string // how long the server keeps a silent session, as a setting; empty: it has no such setting
	waitIdle string // the same of a session that waits
	gated    bool   // it holds the gate of the lock that it waits for
	seat     string // the key of its seat in a long wait; empty: it has none
}

var _ session.Conn[key] = (*conn)(nil)

// Names of the statements that are prepared on every connection.
const (
	tryName       = "sqllock_try"
	unlockName    = "sqllock_unlock"
	manyName      = "sqllock_many"
	waitBeginName = "sqllock_wait_begin"
	waitName      = "sqllock_wait"
	waitEndName   = "sqllock_wait_end"
)

var prepared = map[string]string{
	tryName: trySQL, unlockName: unlockSQL, manyName: manySQL,
	waitBeginName: waitBeginSQL, waitName: waits[commonWait], waitEndName: waitEndSQL,
}

// prepare prepares statements in one round trip. That saves the server the planning, and pgx its cache of statements.
func (c *conn) prepare(ctx context.Context) error {
	all := c.pc.PgConn().StartPipeline(ctx)
	for name, sql := range prepared {
		all.SendPrepare(name, sql, nil)
	}
	_ = all.Sync() // Close returns its error
	err := all.Close()
	if connector.CodeOf(err) == "42P05" {
		return &refusal.Error{
			Seen:    "the connection was given a session that another client had prepared statements in",
			Instead: "set server_reset_query of the pooler in between to DISCARD ALL, or " + insteadOfPooler,
		}
	}
	return err
}

// Run implements session.Conn. A deadline on the socket replaces a context at a fraction of the cost. Run speaks the
// protocol itself: pgx would have the result described each time.
func (c *conn) Run(until, soon time.Time, ops []*session.Op[key]) error {
	c.request.fillIn(ops)
	front := c.pc.PgConn().Frontend()
	front.SendBind(&c.request.bind)
	front.SendExecute(&pgproto3.Execute{})
	front.SendSync(&pgproto3.Sync{})
	c.rows, c.said, c.broken = 0, nil, true
	if err := c.setDeadline(until); err != nil {
		return err
	}
	if err := front.Flush(); err != nil {
		return err
	}
	return c.Resume(soon, ops)
}

func (c *conn) Resume(until time.Time, ops []*session.Op[key]) error {
	if err := c.setDeadline(until); err != nil {
		return err
	}
	err := c.answer(ops)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return session.ErrLate
	case err != nil:
		return err
	}
	if err := c.setDeadline(time.Time{}); err != nil {
		return err
	}
	if c.said == nil && c.rows != len(ops) {
		return fmt.Errorf("%w: %d answers to %d questions", errMixedUp, c.rows, len(ops))
	}
	return withLimit(c.said)
}

func (c *conn) setDeadline(until time.Time) error {
	err := c.pc.PgConn().Conn().SetDeadline(until)
	if c.cut.Load() { // before the deadline was set
		c.Cut()
	}
	return err
}

// request is the statement for the operations of a Run. Its memory is used again for the next one.
type request struct {
	bind        pgproto3.Bind
	kinds, keys []byte // the parameters
}

// fillIn makes it the statement for ops.
func (r *request) fillIn(ops []*session.Op[key]) {
	const (
		text   = 0
		binary = 1
	)
	r.keys = r.keys[:0]
	if kind := kindOf(ops[0]); len(ops) == 1 && (kind == kindTry || kind == kindUnlock) {
		r.keys = encoding.BigEndian.AppendUint64(r.keys, uint64(ops[0].Key.n))
		r.bind.Parameters = append(r.bind.Parameters[:0], r.keys)
		r.bind.ParameterFormatCodes = []int16{binary}
		r.bind.PreparedStatement = unlockName
		if kind == kindTry {
			r.bind.PreparedStatement = tryName
		}
		return
	}
	r.kinds = r.kinds[:0]
	separator := byte('{')
	for _, op := range ops {
		r.kinds = strconv.AppendInt(append(r.kinds, separator), kindOf(op), 10)
		r.keys = strconv.AppendInt(append(r.keys, separator), op.Key.n, 10)
		separator = ','
	}
	r.kinds, r.keys = append(r.kinds, '}'), append(r.keys, '}')
	r.bind.Parameters = append(r.bind.Parameters[:0], r.kinds, r.keys)
	r.bind.ParameterFormatCodes = []int16{text}
	r.bind.PreparedStatement = manyName
}

// answer reads the answer to Run. An error leaves the connection unusable, unless it only took too long.
func (c *conn) answer(ops []*session.Op[key]) error {
	for {
		msg, err := c.pc.PgConn().ReceiveMessage(context.Background())
		if err != nil {
			return err
		}
		switch msg := msg.(type) {
		case *pgproto3.DataRow:
			done, err := answered(msg.Values)
			if err != nil {
				return err
			}
			if c.rows < len(ops) {
				ops[c.rows].Done = done
			}
			c.rows++
		case *pgproto3.ErrorResponse:
			c.said = pgconn.ErrorResponseToPgError(msg)
		case *pgproto3.ReadyForQuery:
			c.broken = false
			return nil
		}
	}
}

// answered returns what the server says of one operation, a boolean in binary. Nothing else is a yes.
func answered(row [][]byte) (bool, error) {
	if len(row) == 1 && len(row[0]) == 1 && row[0][0] <= 1 {
		return row[0][0] == 1, nil
	}
	return false, errMixedUp
}

// errMixedUp is the error for an answer that has not the form of those to the statement. What is in between may have mixed
// up the answers, or lie.
var errMixedUp = errors.New("the answer is not one to this statement")

// rowOf returns the only row of the last of the results, which must have so many columns.
func rowOf(columns int, results ...*pgconn.Result) ([][]byte, error) {
	if n := len(results); n > 0 && len(results[n-1].Rows) == 1 && len(results[n-1].Rows[0]) == columns {
		return results[n-1].Rows[0], nil
	}
	return nil, errMixedUp
}

// Kinds of operations on a key, for many.sql; see kindOf.
const (
	kindUnlock = 0
	kindTry    = 1
	kindShared = 2 // added for a share
	kindPair   = 4 // added for a pair
)

func kindOf(op *session.Op[key]) (kind int64) {
	if op.Take {
		kind += kindTry
	}
	if op.Shared {
		kind += kindShared
	}
	if op.Key.pair {
		kind += kindPair
	}
	return kind
}

func (c *conn) Cut() {
	c.cut.Store(true)
	_ = c.pc.PgConn().Conn().SetDeadline(time.Unix(1, 0)) // fails on a closed socket only
}

func (c *conn) Ping(ctx context.Context) error {
	return mustBeOn(ctx, c.pc, c.pid)
}

// mustBe makes sure of the same as Ping, by a row of ping.sql that came with another answer.
func (c *conn) mustBe(row [][]byte) error {
	now, err := pinged(row)
	if err != nil {
		return err
	}
	return mustBe(c.pid, now)
}

// Watch implements session.Conn. It reads the server's last message on an idle connection, or its end. pgx leaves the
// connection usable when ctx ends first.
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

// Broken implements session.Conn (I42). A proxy may have lost the server and keep the connection to its client.
func (c *conn) Broken(err error) bool {
	return c.broken || c.pc.IsClosed() || connector.ServerLost(err) || errors.Is(err, errMixedUp)
}

// Close implements session.Conn (I42).
func (c *conn) Close() { closeConn(c.pc) }

// closeConn says goodbye to the server, within a second, and closes the connection. After a statement that was cut off,
// pgx goes on closing in the background for up to 15 seconds, unless the socket is closed.
func closeConn(pc *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	until, _ := ctx.Deadline()
	_ = pc.PgConn().Conn().SetDeadline(until) // Cut has set an earlier one, which would keep the goodbye from the server
	_ = pc.Close(ctx)                         // an error changes nothing
	select {
	case <-pc.PgConn().CleanupDone():
	case <-ctx.Done():
		_ = pc.PgConn().Conn().Close() // an error changes nothing
	}
}
