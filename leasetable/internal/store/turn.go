package store

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/pgqueue"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// Turn is a session that stands in the server's own lock queue for names, one at a time: for an advisory lock on
// PostgreSQL, for GET_LOCK on MySQL and MariaDB. Who has the turn of a name is the first to look whether the name is
// free. That decides nothing (I36). The turn ends with the session, or with Leave.
type Turn interface {
	// Try takes the turn of a name, and reports whether it did. It does not wait.
	Try(ctx context.Context, name string) (bool, error)
	// Wait takes the turn of a name, and reports whether it did. It waits for at most d, in whole seconds on MySQL. After
	// a refusal the session can have a seat for the next Wait, or the turn, which that one is told. Leave gives both back.
	Wait(ctx context.Context, name string, d time.Duration) (bool, error)
	// Ping shows the server that the session lives.
	Ping(ctx context.Context) error
	// Leave gives the turn back.
	Leave(ctx context.Context) error
	Close()
}

// OpenTurn implements Store. The server ends the session when it has been silent for turnIdle: a process that was stopped
// would have the turn for ever.
func (s waitSteps) OpenTurn(ctx context.Context) (Turn, error) {
	on, err := s.OpenSession(ctx, turnIdle)
	if err != nil {
		return nil, err
	}
	t := turn{on, s.locks}
	if s.dialect == schema.MySQL {
		return mysqlTurn{t}, nil
	}
	return &postgresTurn{turn: t}, nil
}

// turnIdle is longer than a head is silent and then keeps the turn as the holder; see wait.Turns.
const turnIdle = 10 * time.Second

type turn struct {
	*conn.Session
	locks string
}

// key hashes the name and its table: other tables have other turns.
func (t turn) key(name string) [sha256.Size]byte {
	return sha256.Sum256([]byte("sqllock turn\x00" + t.locks + "\x00" + name))
}

// errNull is the error for a NULL from GET_LOCK: the statement was killed, or the server has no memory for another lock.
var errNull = errors.New("GET_LOCK answered NULL")

// took runs a statement that returns one number, and reports whether that is 1.
func (t turn) took(ctx context.Context, text string) (bool, error) {
	n, err := t.Number(ctx, text)
	if err == nil && !n.Valid {
		err = errNull
	}
	return n.Int64 == 1, dberr.Classify(err)
}

func (t turn) Ping(ctx context.Context) error {
	_, err := t.Number(ctx, "SELECT 1")
	return dberr.Classify(err)
}

type postgresTurn struct {
	turn
	stood    bool   // in vain
	seat     int64  // the key of its seat; 0: it has none
	settings string // as they were last sent
}

func (t *postgresTurn) number(name string) int64 {
	key := t.key(name)
	return int64(binary.BigEndian.Uint64(key[:]))
}

func (t *postgresTurn) Try(ctx context.Context, name string) (bool, error) {
	return t.took(ctx, fmt.Sprintf("SELECT pg_catalog.pg_try_advisory_lock(%d)::int", t.number(name)))
}

// Wait implements Turn. It stands in the queue for less than a second at first. Then it takes a seat and stands for the rest
// of d, or sleeps instead; see package pgqueue.
func (t *postgresTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	until := time.Now().Add(d)
	if !t.stood {
		t.stood = true
		ours, err := t.stand(ctx, name, min(d, pgqueue.BeforeLook))
		if !ours && err == nil { // who sleeps must not have the turn
			ours, err = t.Try(ctx, name)
		}
		if ours || err != nil || d <= pgqueue.BeforeLook {
			return ours, err
		}
	}
	if t.seat == 0 {
		seat, err := t.Number(ctx, "SELECT "+pgqueue.TakeSeat(fmt.Sprintf("(%d)::bigint", t.number(name)), pgqueue.FirstSeat))
		switch t.seat = seat.Int64; {
		case err != nil:
			return false, dberr.Classify(err)
		case t.seat == 0:
			return false, backoff.Sleep(ctx, min(time.Until(until), turnIdle/2))
		}
	}
	return t.stand(ctx, name, time.Until(until))
}

// stand stands in the queue for d. A block catches the timeout, so that the server logs no error. The timeout bounds how
// long a virtual transaction is held: CREATE INDEX CONCURRENTLY waits for every one that is older than itself. The timeout
// can come just after the grant: then the session has the turn, and is told when it stands again, at once. The block has its
// parameters as settings, which are sent along if they have changed: pg_stat_statements has an entry for each other text of a
// block. Who is granted the turn gives the seat back.
func (t *postgresTurn) stand(ctx context.Context, name string, d time.Duration) (bool, error) {
	d = max(d.Truncate(time.Millisecond), time.Millisecond)
	settings := fmt.Sprintf("SELECT pg_catalog.set_config('sqllock.turn', '%d', false), pg_catalog.set_config('sqllock.seat', '%d', false), "+
		"pg_catalog.set_config('lock_timeout', '%d', false); ", t.number(name), t.seat, d.Milliseconds())
	block, seat := "", ""
	if settings != t.settings {
		t.settings, block = settings, settings
	}
	if t.seat != 0 {
		seat = ", pg_catalog.pg_advisory_unlock(pg_catalog.current_setting('sqllock.seat')::bigint)"
	}
	block += fmt.Sprintf(`DO $$ BEGIN
  PERFORM pg_catalog.pg_advisory_lock(pg_catalog.current_setting('sqllock.turn')::bigint)%s;
EXCEPTION WHEN lock_not_available THEN
END $$`, seat)
	began := time.Now()
	err := t.Exec(ctx, block)
	if err != nil || time.Since(began) >= d {
		return false, dberr.Classify(err)
	}
	t.seat = 0
	return true, nil
}

func (t *postgresTurn) Leave(ctx context.Context) error {
	t.stood, t.seat = false, 0
	return dberr.Classify(t.Exec(ctx, "SELECT pg_catalog.pg_advisory_unlock_all()"))
}

type mysqlTurn struct{ turn }

func (t mysqlTurn) getLock(ctx context.Context, name string, seconds int) (bool, error) {
	key := t.key(name)
	text := hex.EncodeToString(key[:16])
	return t.took(ctx, fmt.Sprintf("SELECT GET_LOCK(CONCAT('sqllock ', LEFT(SHA2(CONCAT(DATABASE(), '%s'), 256), 40)), %d)", text, seconds))
}

func (t mysqlTurn) Try(ctx context.Context, name string) (bool, error) {
	return t.getLock(ctx, name, 0)
}

// ErrEarly is the error for a GET_LOCK that did not wait: a proxy has answered it, or has changed it.
var ErrEarly = errors.New("GET_LOCK answered 0 before its time")

// Wait implements Turn. An answer that comes early is an error, after which waiters poll for a while: else they would ask
// again at once.
func (t mysqlTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	d = d.Truncate(time.Second)
	began := time.Now()
	ours, err := t.getLock(ctx, name, int(d/time.Second))
	if !ours && err == nil && time.Since(began) < d/2 {
		err = ErrEarly
	}
	return ours, err
}

func (t mysqlTurn) Leave(ctx context.Context) error {
	_, err := t.Number(ctx, "SELECT RELEASE_ALL_LOCKS()")
	return dberr.Classify(err)
}
