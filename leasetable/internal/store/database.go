package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// Database is a Store whose tables are in a database of one of the dialects. It has the steps by what they do.
type Database struct {
	*database
	readSteps
	leaseSteps
	acquireSteps
	releaseSteps
	batchSteps
	holdSteps
	permitSteps
	waitSteps
	serverFacts
}

// database is what all steps have in common: the connections, the statements, and how one is run.
type database struct {
	conn.Pools
	dialect  schema.Dialect
	locks    string // the name of the table of locks
	Texts    map[Statement]Prepared
	rowWaits rowWaitLimiter
	durable  bool
}

// Options are what a user chooses.
type Options struct {
	Durable bool       // releases are durable, as acquisitions always are
	Most    conn.Limit // connections
}

// New returns the store whose tables t are in the database that c connects to.
func New(c driver.Connector, d schema.Dialect, t schema.Tables, o Options) (*Database, error) {
	if err := t.Validate(d); err != nil {
		return nil, err
	}
	texts, err := loadStatements(d, t)
	if err != nil {
		return nil, err
	}
	on := &database{
		Pools:    conn.Open(c, d, o.Most),
		dialect:  d,
		locks:    t.Rewrite(d, "sqllock_lock"),
		Texts:    texts,
		rowWaits: newRowWaitLimiter(mayWaitForRows(o.Most)),
		durable:  o.Durable,
	}
	return &Database{
		database:     on,
		readSteps:    readSteps{on},
		leaseSteps:   leaseSteps{on},
		acquireSteps: acquireSteps{on},
		releaseSteps: releaseSteps{on},
		batchSteps:   batchSteps{database: on},
		holdSteps:    holdSteps{on},
		permitSteps:  permitSteps{on},
		waitSteps:    waitSteps{on},
		serverFacts:  serverFacts{on},
	}, nil
}

// exec runs a statement once it may wait for row locks; see limitRowWait.
func (s *database) exec(ctx context.Context, p *conn.Pool, st Statement, args ...any) (sql.Result, error) {
	done, err := s.limitRowWait(ctx, st, args)
	if err != nil {
		return nil, err
	}
	defer done()
	text, args := s.bind(st, args)
	return p.ExecContext(ctx, text, args...)
}

// query runs a statement that returns rows.
func (s *database) query(ctx context.Context, st Statement, args ...any) (*sqlx.Rows, error) {
	text, args := s.bind(st, args)
	return s.Work.QueryxContext(ctx, text, args...)
}

// states runs a statement that returns names, permits or leases.
func (s *database) states(ctx context.Context, st Statement, args ...any) (all []State, err error) {
	text, args := s.bind(st, args)
	err = s.Work.SelectContext(ctx, &all, text, args...)
	return all, dberr.Classify(err)
}

// bind returns the text of a statement, and its arguments as they are sent. MariaDB reads bytes as text in the
// character set of the connection: it stored the first bytes of an emoji, alone, as an empty name. So bytes are sent as
// hex to MySQL and MariaDB.
func (s *database) bind(st Statement, args []any) (text string, sent []any) {
	p := s.Texts[st]
	sent = make([]any, len(args))
	for i, arg := range args {
		switch a := arg.(type) {
		case row:
			arg = a.key
		case raw: // of a State
			arg = []byte(a)
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
func (s *database) change(ctx context.Context, p *conn.Pool, st Statement, args ...any) (int64, error) {
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return 0, dberr.Classify(err)
	}
	rows, err := result.RowsAffected()
	return rows, dberr.Classify(err)
}

// claim runs a statement that returns one number, such as the token of a name that it acquires, or 0 if it did nothing.
func (s *database) claim(ctx context.Context, st Statement, args ...any) (token int64, err error) {
	_, token, err = s.changeNumber(ctx, s.Work, st, args...)
	return token, err
}

// errTrigger is the error of a name that was acquired, with a token that is not known.
var errTrigger = &dberr.Error{Err: &refusal.Error{
	Seen:    "a trigger on the table of locks: MySQL and MariaDB then do not return the token of a name that was acquired",
	Instead: "drop the trigger",
}}

// maybeNumber runs a statement that returns one number or no row. It reports whether there was a row. With an error
// nothing is known, even if there was one: a standby may not have what the statement did (I16).
func (s *database) maybeNumber(ctx context.Context, p *conn.Pool, st Statement, args ...any) (found bool, n int64, err error) {
	done, err := s.limitRowWait(ctx, st, args)
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
		if !errors.Is(err, conn.ErrUnsent) {
			break
		}
	}
	if err != nil {
		return false, 0, dberr.Classify(err)
	}
	return found, n, nil
}

// commit returns the synchronous_commit of a statement that releases names on PostgreSQL, or nil for the setting of the
// session (I12). If a crash of the server forgets such a release, the owner finds out when it
// connects again. A pooler hides that, and a minimum hold has to survive the crash: then commit returns nil.
func (s *database) commit(req *Request) any {
	if s.durable || s.BehindPooler() || req.MinHold > 0 {
		return nil
	}
	return "off"
}

// changeNumber runs a statement that changes one row, if it finds it, and returns a number: on MySQL as the insert id,
// which is 0 if it did not find the row. It reports whether it found the row. On MySQL that means that it changed the
// row, unless clientFoundRows is set.
func (s *database) changeNumber(ctx context.Context, p *conn.Pool, st Statement, args ...any) (found bool, n int64, err error) {
	if s.dialect != schema.MySQL {
		return s.maybeNumber(ctx, p, st, args...)
	}
	result, err := s.exec(ctx, p, st, args...)
	if err != nil {
		return false, 0, dberr.Classify(err)
	}
	rows, err := result.RowsAffected()
	n, idErr := result.LastInsertId()
	if err = errors.Join(err, idErr); st == acquireFree && rows > 0 && n == 0 {
		err = errTrigger
	}
	return rows > 0, n, dberr.Classify(err)
}

// step is a statement of a transaction, with its arguments.
type step struct {
	st   Statement
	args []any
}

// inTransaction runs steps in one transaction, for the dialects that cannot change two tables in one statement (I31). The
// first step decides: if it changes no row, nothing is done. The transaction begins once the first step may wait for row
// locks, and ends with a commit if no step has failed. inTransaction reports whether it was committed.
func (s *database) inTransaction(ctx context.Context, steps ...step) (done bool, err error) {
	waited, err := s.limitRowWait(ctx, steps[0].st, steps[0].args)
	if err != nil {
		return false, err
	}
	defer waited()
	tx, err := s.Work.BeginTxx(ctx, nil)
	if err != nil {
		return false, dberr.Classify(err)
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	for i, step := range steps {
		text, args := s.bind(step.st, step.args)
		result, err := tx.ExecContext(ctx, text, args...)
		if err != nil {
			return false, dberr.Classify(err)
		}
		if rows, err := result.RowsAffected(); err != nil || i == 0 && rows == 0 {
			return false, dberr.Classify(err)
		}
	}
	err = tx.Commit()
	return err == nil, dberr.Classify(err)
}
