package pg

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/session"
)

// WithSessionPooling declares that a pooler in between gives every client a session of its own for as long as the
// client is connected (PgBouncer: pool_mode = session), and frees the client's locks when it leaves (PgBouncer:
// server_reset_query = DISCARD ALL, the default). Without this option every pooler is refused: they look the same from
// outside.
//
// The Locker checks the declaration with every connection that it opens, by means of another one that it closes again,
// and at every heartbeat. If it proves wrong, the acquisition is refused (sqllock.ErrRefused), or the locks end with
// sqllock.ErrLost.
func WithSessionPooling() Option {
	return func(s *settings) { s.pooled = true }
}

// resetTimeout is how long a pooler may take to free the locks of a client that left, and leastLooks how often this process looks
// at least: it may have stalled meanwhile.
const (
	resetTimeout = 2 * time.Second
	leastLooks   = 20
)

// checkPooler refuses a pooler that does not pool sessions, or leaves locks behind (I49). pid is the session that the
// client pc was given.
func (l *Locker) checkPooler(ctx context.Context, pc *pgx.Conn, pid string) error {
	key := rand.Int64() //nolint:gosec // a key that nobody else uses; not a secret
	err := l.lockElsewhere(ctx, pc, pid, key)
	if err != nil {
		return err
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for looks := 0; looks < leastLooks || time.Since(began) < resetTimeout; looks++ {
		var free bool
		if err := pc.QueryRow(ctx, trySQL, pgx.QueryExecModeExec, key).Scan(&free); err != nil {
			return err
		}
		if free {
			return pc.QueryRow(ctx, unlockSQL, pgx.QueryExecModeExec, key).Scan(&free)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &session.UnavailableError{Err: context.Cause(ctx)}
		}
	}
	return &refusal.Error{
		Seen:    "the connection pooler in between keeps the locks of a client that has left",
		Instead: "set its server_reset_query to DISCARD ALL, or connect to the server itself",
	}
}

// lockElsewhere takes a lock as another client, which then disconnects.
func (l *Locker) lockElsewhere(ctx context.Context, pc *pgx.Conn, pid string, key int64) (err error) {
	other, err := l.connect(ctx)
	if err != nil {
		return notConnected(err, true)
	}
	defer func() { //nolint:contextcheck // closeConn also with a dead ctx
		if err != nil && other.IsClosed() && !errors.Is(err, sqllock.ErrRefused) {
			err = &session.UnavailableError{Err: err}
		}
		closeConn(other)
	}()
	theirs, err := ping(ctx, other)
	if err != nil {
		return err
	}
	// A pooler of transactions gives a client the same session again while that is not busy.
	for range 10 {
		if theirs == pid {
			return &refusal.Error{
				Seen:    fmt.Sprintf("a connection pooler in between gave the session %s to two clients at the same time", pid),
				Instead: insteadOfPooler,
			}
		}
		if err := errors.Join(mustBeOn(ctx, pc, pid), mustBeOn(ctx, other, theirs)); err != nil {
			return err
		}
	}
	var taken bool
	err = other.QueryRow(ctx, trySQL, pgx.QueryExecModeExec, key).Scan(&taken)
	if err == nil && !taken {
		err = errors.New("somebody took a lock that was to be tried") // its key was random
	}
	return err
}

// ping returns the process id of a session, and an error if locks on its server can no longer be trusted.
func ping(ctx context.Context, pc *pgx.Conn) (pid string, err error) {
	results, err := pc.PgConn().Exec(ctx, pingSQL).ReadAll()
	if err != nil {
		return "", err
	}
	row, err := rowOf(2, results...)
	if err != nil {
		return "", err
	}
	return pinged(row)
}

// pinged reads the row of ping.sql.
func pinged(row [][]byte) (pid string, err error) {
	if string(row[0]) == "t" {
		return "", errStandby
	}
	return string(row[1]), nil
}

// mustBeOn returns an error if a connection no longer has the session that it began with.
func mustBeOn(ctx context.Context, pc *pgx.Conn, pid string) error {
	now, err := ping(ctx, pc)
	if err != nil {
		return err
	}
	return mustBe(pid, now)
}

// mustBe returns an error if a connection that began with one session has another one now.
func mustBe(pid, now string) error {
	if now == pid {
		return nil
	}
	return &refusal.Error{
		Seen:    fmt.Sprintf("a connection pooler in between ran statements of one client in the sessions %s and %s", pid, now),
		Instead: insteadOfPooler,
	}
}

const (
	useLease        = "use a lease (package leasetable), which needs no session"
	insteadOfPooler = "connect to the server itself, take the lock for a transaction (pg.LockTx), or " + useLease
)
