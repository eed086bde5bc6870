package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

// conn is a session of a Locker on MySQL or MariaDB.
type conn struct {
	sc       *sql.Conn
	socket   *socket
	watcher  *watcher // nil: only the heartbeat finds the end of the connection
	id       int64    // CONNECTION_ID()
	ttl      time.Duration
	database string
	uncut    context.Context //nolint:containedctx // the connection's own: ends when Cut is called
	cut      context.CancelFunc

	// Prepared once: otherwise the driver prepares, executes and closes a statement with arguments each time.
	getLock, releaseLock, many driver.Stmt
}

var _ session.Conn[string] = (*conn)(nil)

func newConn(sc *sql.Conn, s *socket) *conn {
	c := &conn{sc: sc, socket: s}
	c.uncut, c.cut = context.WithCancel(context.Background())
	return c
}

// errNull is the error for a NULL from GET_LOCK.
var errNull = errors.New("the server did not take the lock: the statement was killed or hit a time limit of the server, " +
	"or the server has no memory for another lock (GET_LOCK answered NULL)")

// prepare prepares a statement with the driver itself: database/sql would spend as much time on a call as the server
// does.
func (c *conn) prepare(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	err = c.sc.Raw(func(dc any) error {
		preparer, ok := dc.(driver.ConnPrepareContext)
		if !ok {
			return fmt.Errorf("%w: the connection of this *sql.DB is a %T; %s", sqllock.ErrUnsupported, dc, needDriver)
		}
		if stmt, err = preparer.PrepareContext(ctx, query); err != nil {
			return prohibited(err)
		}
		if _, ok := stmt.(driver.StmtQueryContext); !ok {
			return fmt.Errorf("%w: a prepared statement of this *sql.DB is a %T; %s", sqllock.ErrUnsupported, stmt, needDriver)
		}
		return nil
	})
	return stmt, err
}

func (c *conn) Run(until, _ time.Time, ops []*session.Op[string]) error {
	if c.socket.Conn == nil {
		ctx, cancel := context.WithDeadline(c.uncut, until)
		defer cancel()
		return c.run(ctx, ops)
	}
	if err := c.socket.SetDeadline(until); err != nil {
		return err
	}
	if c.uncut.Err() != nil { // before the deadline was set
		c.Cut()
	}
	if err := c.run(context.Background(), ops); err != nil {
		return err
	}
	return c.socket.SetDeadline(time.Time{})
}

func (c *conn) run(ctx context.Context, ops []*session.Op[string]) error {
	if len(ops) == 1 {
		return c.runOne(ctx, ops[0])
	}
	type pair [2]any
	pairs := make([]pair, len(ops))
	for i, op := range ops {
		pairs[i] = pair{op.Take, ServerName(c.database, op.Key)}
	}
	list, err := json.Marshal(pairs)
	if err != nil {
		return err
	}
	answers, err := c.query(ctx, c.many, string(list))
	if err != nil {
		return err
	}
	if len(answers) != len(ops) {
		return fmt.Errorf("%d answers to %d questions", len(answers), len(ops))
	}
	for i, answer := range answers {
		switch {
		case answer.value == nil && ops[i].Take:
			return errNull
		case answer.readOnly:
			return errReadOnly
		}
		ops[i].Done = answer.isOne()
	}
	return nil
}

// runOne takes or gives back one key. It waits for nothing (I41).
func (c *conn) runOne(ctx context.Context, op *session.Op[string]) (err error) {
	if op.Take {
		op.Done, err = c.get(ctx, op.Key, 0)
		return err
	}
	// RELEASE_LOCK returns 0 or NULL for a lock that is not ours.
	answers, err := c.query(ctx, c.releaseLock, ServerName(c.database, op.Key))
	op.Done = err == nil && len(answers) == 1 && answers[0].isOne()
	return err
}

// Wait implements session.Conn. The place in the queue is lost after each slice (I47).
func (c *conn) Wait(ctx context.Context, op *session.Op[string], waited, left time.Duration) (err error) {
	op.Done, err = c.get(ctx, op.Key, sliceOf(waited, left, c.ttl))
	return err
}

// sliceOf returns the length of a slice of a wait in seconds: MySQL waits for whole seconds only. It is from 1 to 4, less than
// a third of the session TTL (a third of the shortest), and not much longer than left. The longer a waiter has waited, the
// likelier its slice is a long one, and the random choice keeps waiters from falling into step with the holders.
func sliceOf(waited, left, ttl time.Duration) int64 {
	longest := min(4, (ttl-1)/(3*time.Second), left/time.Second+1)
	return int64(max(1, min(1+rand.N(waited+time.Second)/(time.Second/2), longest))) //nolint:gosec // jitter
}

func (c *conn) Forget(ctx context.Context) error {
	_, err := c.sc.ExecContext(ctx, forgetSQL)
	return err
}

// get calls GET_LOCK.
func (c *conn) get(ctx context.Context, name string, seconds int64) (bool, error) {
	answers, err := c.query(ctx, c.getLock, ServerName(c.database, name), seconds)
	switch {
	case err != nil:
		return false, err
	case len(answers) != 1 || answers[0].value == nil:
		return false, errNull
	case answers[0].readOnly:
		return false, errReadOnly
	}
	return answers[0].isOne(), nil
}

// answer is what a statement says of one lock.
type answer struct {
	value    driver.Value // of GET_LOCK or RELEASE_LOCK
	readOnly bool         // the server, once it had answered GET_LOCK
}

// isOne reports whether GET_LOCK or RELEASE_LOCK succeeded: only the integer 1 means that.
func (a answer) isOne() bool { return a.value == int64(1) }

// isReadOnly reports whether the value of read_only, a number or a text, says that the server is read-only.
func isReadOnly(variable driver.Value) bool {
	if text, ok := variable.([]byte); ok { // MariaDB 12
		return isSet(string(text))
	}
	return variable != int64(0)
}

// mustBe returns an error if the connection no longer has the session that it began with. Its locks ended with that.
func (c *conn) mustBe(now driver.Value) error {
	if now == c.id {
		return nil
	}
	return &refusal.Error{
		Seen:    fmt.Sprintf("a proxy in between ran statements of one connection in the sessions %d and %v", c.id, now),
		Instead: "connect to the server itself, or " + useLease,
	}
}

// query runs a statement whose rows are answers. Their last column is the session.
func (c *conn) query(ctx context.Context, stmt driver.Stmt, args ...any) (answers []answer, err error) {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	err = c.sc.Raw(func(any) error {
		rows, err := stmt.(driver.StmtQueryContext).QueryContext(ctx, named)
		if err != nil {
			return prohibited(err)
		}
		row := make([]driver.Value, len(rows.Columns()))
		for err = rows.Next(row); err == nil; err = rows.Next(row) { // which overwrites the text of the row before
			if err = c.mustBe(row[len(row)-1]); err != nil {
				break
			}
			answers = append(answers, answer{row[0], len(row) > 2 && isReadOnly(row[1])})
		}
		if !errors.Is(err, io.EOF) {
			return errors.Join(prohibited(err), rows.Close())
		}
		return rows.Close()
	})
	return answers, err
}

func (c *conn) Cut() {
	c.cut()
	if c.socket.Conn != nil {
		_ = c.socket.SetDeadline(time.Unix(1, 0)) // fails on a closed socket only
	}
}

func (c *conn) Holder(ctx context.Context, name string) (sqllock.Holder, bool, error) {
	var id sql.NullInt64
	var host string
	err := c.sc.QueryRowContext(ctx, holderSQL, ServerName(c.database, name)).Scan(&id, &host)
	if err != nil {
		return sqllock.Holder{}, false, err
	}
	return sqllock.Holder{Session: id.Int64, Address: host}, id.Valid, nil
}

func (c *conn) Ping(ctx context.Context) error {
	var readOnly string
	var id int64
	if err := c.sc.QueryRowContext(ctx, pingSQL).Scan(&readOnly, &id); err != nil {
		if c.Broken(err) {
			return fmt.Errorf("the connection ended: %w", err)
		}
		return err
	}
	if isSet(readOnly) {
		return errReadOnly
	}
	return c.mustBe(id)
}

// Broken implements session.Conn (I42). After an error that the server sent, the connection still works, unless the
// error says that the server or the session is ending, or that a proxy has lost the server.
func (c *conn) Broken(err error) bool {
	const (
		shutdown       = 1053
		killed         = 3169
		killedMaria    = 1927
		idleForTooLong = 4031
	)
	var answer *gomysql.MySQLError
	if !errors.As(err, &answer) {
		return !errors.Is(err, errNull)
	}
	return isOneOf(answer, shutdown, killed, killedMaria, idleForTooLong) || connector.ServerLost(answer)
}

// Close implements session.Conn (I42). It says goodbye to the server, within a second, and closes the connection instead
// of giving it back to a pool; an error changes nothing.
func (c *conn) Close() {
	c.cut()
	if c.socket.Conn != nil {
		_ = c.socket.SetDeadline(time.Now().Add(time.Second)) // Cut has set an earlier one
	}
	_ = c.sc.Raw(func(any) error { return driver.ErrBadConn })
	_ = c.sc.Close()
}
