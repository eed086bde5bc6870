package store

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// Request asks for one name to be acquired or released for one caller.
type Request struct {
	Name    string
	ID      []byte // of the lease
	Token   int64  // that the name is held with, or was released with; see knownTokens
	MinHold time.Duration
	Since   int64 // since when the caller waits, if the row of the name may say so

	Metadata []byte // to attach

	Patient bool // the statement waits until it may wait for the row, or need not wait (I38); otherwise a queue limits it
}

// key is the name as an argument of a statement.
func (req *Request) key() any {
	if req.Patient {
		return row{[]byte(req.Name)}
	}
	return []byte(req.Name)
}

// patient returns a copy of req that is Patient. Requests that share a statement are not.
func (req *Request) patient() *Request {
	q := *req
	q.Patient = true
	return &q
}

// minHoldUS is MinHold in microseconds, or nil.
func (req *Request) minHoldUS() any {
	if req.MinHold == 0 {
		return nil
	}
	return req.MinHold.Microseconds()
}

// Result is what a statement did to one name.
type Result struct {
	Token     int64 // with which the name was acquired or released; 0: it was not
	HasWaiter bool  // the name was released, and another process waits for it
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 1024

func (s *Database) AcquireFree(ctx context.Context, req *Request) (got Result, err error) {
	st := acquire
	// MySQL truncates the upper bound of the range in acquire_free.sql to the length of a name, and looks up a name of
	// the maximum length as `name = ?`.
	if s.dialect == schema.MySQL && len(req.Name) < MaxName {
		st = acquireFree
	}
	got.Token, err = s.claim(ctx, st, []byte(req.Name), req.ID, req.Since, req.Metadata)
	return got, err
}

func (s *Database) Acquire(ctx context.Context, req *Request) (got Result, err error) {
	got.Token, err = s.claim(ctx, acquire, req.key(), req.ID, req.Since, req.Metadata)
	return got, err
}

// Insert implements Store. On MySQL and SQLite the acquire statements insert, too.
func (s *Database) Insert(ctx context.Context, req *Request) (token int64, err error) {
	if s.dialect == schema.Postgres {
		return s.claim(ctx, insert, row{[]byte(req.Name)}, req.ID, req.Metadata)
	}
	got, err := s.Acquire(ctx, req.patient())
	return got.Token, err
}

func (s *Database) Release(ctx context.Context, req *Request) (got Result, err error) {
	args := []any{req.key(), req.ID, req.Token, req.minHoldUS()}
	if s.dialect == schema.Postgres {
		args = append(args, s.commit(req))
	}
	freed, n, err := s.changeNumber(ctx, s.Work, release, args...)
	if freed {
		got = Result{Token: req.Token, HasWaiter: n > 0}
	}
	return got, err
}
