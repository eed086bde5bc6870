package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// Store runs the statements of one dialect on its own connections.
type Store struct {
	conn.Pools
	dialect schema.Dialect
	Texts   map[Statement]Prepared

	RowWaits rowWaitLimiter

	Acquires, releases *queue

	known           knownTokens
	unreliableNotes atomic.Bool // a session did not keep the notes of a statement; see atOnce

	Durable bool // releases are durable, like acquisitions; see WithDurableRelease
}

// New returns a store on the tables t of the database that c connects to. hand runs a function in another
// goroutine.
func New(c driver.Connector, d schema.Dialect, t schema.Tables, hand func(f func()) error) (*Store, error) {
	if err := t.Validate(d); err != nil {
		return nil, err
	}
	texts, err := loadStatements(d, t)
	if err != nil {
		return nil, err
	}
	s := &Store{Pools: conn.Open(c, d), dialect: d, Texts: texts, RowWaits: newRowWaitLimiter()}
	s.newQueues(hand)
	return s, nil
}

// System is the name of the database for people.
func (s *Store) System() string {
	switch {
	case s.dialect == schema.Postgres:
		return "postgresql"
	case s.OnMariaDB():
		return "mariadb"
	}
	return string(s.dialect)
}

// OneWriter reports whether all writers wait for one lock, as they do for a SQLite file.
func (s *Store) OneWriter() bool { return s.dialect == schema.SQLite }

// exec runs a statement once it may wait for row locks; see limitRowWait.
func (s *Store) exec(ctx context.Context, p *conn.Pool, st Statement, args ...any) (sql.Result, error) {
	done, err := s.limitRowWait(ctx, p, st, args...)
	if err != nil {
		return nil, err
	}
	defer done()
	text, args := s.bind(st, args)
	return p.ExecContext(ctx, text, args...)
}

// query runs a statement that returns rows.
func (s *Store) query(ctx context.Context, p *conn.Pool, st Statement, args ...any) (*sqlx.Rows, error) {
	text, args := s.bind(st, args)
	return p.QueryxContext(ctx, text, args...)
}

// bind returns the text of a statement, and its arguments as they are sent. MariaDB reads bytes as text in the
// character set of the connection: it stored the first bytes of an emoji, alone, as an empty name. So bytes are sent as
// hex to MySQL and MariaDB.
func (s *Store) bind(st Statement, args []any) (text string, sent []any) {
	p := s.Texts[st]
	sent = make([]any, len(args))
	for i, arg := range args {
		if r, ok := arg.(row); ok {
			arg = r.key
		}
		if b, ok := arg.([]byte); ok && b != nil && s.dialect == schema.MySQL {
			arg = hex.EncodeToString(b)
		}
		sent[i] = arg
	}
	if p.order == nil {
		return p.Text, sent
	}
	ordered := make([]any, len(p.order))
	for i, n := range p.order {
		ordered[i] = sent[n]
	}
	return p.Text, ordered
}

// change runs a statement and returns the number of rows that it changed.
func (s *Store) change(ctx context.Context, p *conn.Pool, st Statement, args ...any) (int64, error) {
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return 0, dberr.Classify(err)
	}
	rows, err := result.RowsAffected()
	return rows, dberr.Classify(err)
}

// ReleaseByLease runs release_by_lease.sql.
func (s *Store) ReleaseByLease(ctx context.Context, name string, id []byte, keep time.Duration) (freed int64, err error) {
	req := &Request{MinHold: keep}
	return s.change(ctx, s.Work, releaseByLease, row{[]byte(name)}, id, req.minHoldUS())
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 1024

// AcquireFree acquires a name that has a row and is free. It does not wait for the row of a name that is held and
// locked.
func (s *Store) AcquireFree(ctx context.Context, req *Request) (got Result, err error) {
	st := acquire
	// MySQL truncates the upper bound of the range in acquire_free.sql to the length of a name, and looks up a name of
	// the maximum length as `name = ?`.
	if s.dialect == schema.MySQL && len(req.Name) < MaxName {
		st = acquireFree
	}
	got.Token, err = s.claim(ctx, st, []byte(req.Name), req.ID, req.Since, req.Metadata)
	return got, err
}

// Insert acquires a name that has no row. On MySQL and SQLite the acquire statements insert, too.
func (s *Store) Insert(ctx context.Context, req *Request) (token int64, err error) {
	var got Result
	switch s.dialect {
	case schema.MySQL:
		got, err = s.acquirePatiently(ctx, req)
	case schema.SQLite:
		got, err = s.AcquireSoon(ctx, req, false)
	default:
		return s.claim(ctx, insert, []byte(req.Name), req.ID, req.Metadata)
	}
	return got.Token, err
}

// Takeover runs takeover.sql.
func (s *Store) Takeover(ctx context.Context, req *Request, dead []byte) (token int64, err error) {
	return s.claim(ctx, takeover, req.ID, row{[]byte(req.Name)}, dead, req.Since, req.Metadata)
}

// claim runs a statement that may acquire a name. It returns the token, or 0 if the statement did not acquire the name.
func (s *Store) claim(ctx context.Context, st Statement, args ...any) (token int64, err error) {
	if s.dialect == schema.MySQL {
		result, err := s.exec(ctx, s.Work, st, args...)
		if err != nil {
			return 0, dberr.Classify(err)
		}
		token, err = result.LastInsertId() // the affected rows depend on clientFoundRows
		return token, dberr.Classify(err)
	}
	return s.number(ctx, s.Work, st, args...)
}

// number runs a statement that returns one number or no row. No row counts as 0.
func (s *Store) number(ctx context.Context, p *conn.Pool, st Statement, args ...any) (n int64, err error) {
	_, n, err = s.maybeNumber(ctx, p, st, args...)
	return n, err
}

// maybeNumber runs a statement that returns one number or no row. It reports whether there was a row.
func (s *Store) maybeNumber(ctx context.Context, p *conn.Pool, st Statement, args ...any) (found bool, n int64, err error) {
	done, err := s.limitRowWait(ctx, p, st, args...)
	if err != nil {
		return false, 0, err
	}
	defer done()
	text, args := s.bind(st, args)
	for range 3 { // database/sql does the same when a connection turns out to be dead before anything is sent
		err = p.Replicated(func() (err error) {
			found, n, err = p.Number(ctx, text, args)
			return err
		})
		if !errors.Is(err, driver.ErrBadConn) {
			break
		}
	}
	return found, n, dberr.Classify(err)
}

// commit returns the synchronous_commit of a statement that releases names on PostgreSQL, or nil for the setting of the
// session, as on other databases. If a crash of the server forgets such a release, the owner finds out when it connects
// again. A pooler hides that, and a minimum hold has to survive the crash: then commit returns nil.
func (s *Store) commit(req *Request) any {
	if s.dialect != schema.Postgres || s.Durable || s.BehindPooler() || req.MinHold > 0 {
		return nil
	}
	return "off"
}

// changeNumber runs a statement that changes one row, if it finds it, and returns a number: on MySQL as the insert id.
// It reports whether it found the row.
func (s *Store) changeNumber(ctx context.Context, p *conn.Pool, st Statement, args ...any) (found bool, n int64, err error) {
	if s.dialect != schema.MySQL {
		return s.maybeNumber(ctx, p, st, args...)
	}
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return false, 0, dberr.Classify(err)
	}
	rows, err := result.RowsAffected()
	if err != nil || rows == 0 {
		return false, 0, dberr.Classify(err)
	}
	n, err = result.LastInsertId()
	return true, n, dberr.Classify(err)
}
