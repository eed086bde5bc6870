package store

import (
	"bytes"
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
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

// Call is a request that shares a statement with others.
type Call = coalesce.Call[*Request, Result]

type queue = coalesce.Queue[*Request, Result]

// acquisitions and releases are the statements that callers share.
type (
	acquisitions struct{ *Store }
	releases     struct{ *Store }
)

// newQueues makes the queues of callers who share statements.
func (s *Store) newQueues(hand func(f func()) error) {
	s.releases, s.Acquires = coalesce.New(hand,
		coalesce.Kind[*Request, Result]{Statements: releases{s}, Within: dberr.AttemptTimeout, Serialized: s.OneWriter()},
		coalesce.Kind[*Request, Result]{Statements: acquisitions{s}, Within: dberr.ConflictTimeout, Serialized: s.OneWriter()})
}

// AcquireSoon acquires a name that is free, together with the names of other callers if there are any. If a shared
// statement was tried before, a statement of its own may wait for the row of the name. So it is for a caller whose
// waiter note only such a statement removes.
func (s *Store) AcquireSoon(ctx context.Context, req *Request, before bool) (Result, error) {
	if !s.OneWriter() && (before || req.Since != 0 && !s.RowWaits.Saturated()) {
		return s.acquirePatiently(ctx, req)
	}
	return s.Acquires.Do(ctx, req)
}

// ReleaseSoon releases a name, together with the names of other callers if there are any. If a shared statement was
// tried before, a statement of its own may wait for the row of the name.
func (s *Store) ReleaseSoon(ctx context.Context, req *Request, before bool) (Result, error) {
	if !s.OneWriter() && before {
		return s.patiently(ctx, req, releases{s}.One)
	}
	return s.releases.Do(ctx, req)
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

// acquirePatiently acquires a name that is free by a statement that may wait for its row.
func (s *Store) acquirePatiently(ctx context.Context, req *Request) (Result, error) {
	return s.patiently(ctx, req, acquisitions{s}.One)
}

// patiently runs a statement for req once it may wait for a row lock, or need not wait.
func (s *Store) patiently(ctx context.Context, req *Request, run func(context.Context, *Request) (Result, error)) (Result, error) {
	done, err := s.mayWait(ctx, acquire, row{[]byte(req.Name)})
	if err != nil {
		return Result{}, err
	}
	defer done()
	return run(ctx, req)
}

// One runs acquire.sql. It implements coalesce.Statements.
func (s acquisitions) One(ctx context.Context, req *Request) (got Result, err error) {
	got.Token, err = s.claim(ctx, acquire, []byte(req.Name), req.ID, req.Since, req.Metadata)
	return got, err
}

// Many implements coalesce.Statements.
func (s acquisitions) Many(ctx context.Context, reqs []*Request) ([]Result, error) {
	return resultsOf(reqs)(s.AcquireMany(ctx, reqs))
}

// Alike implements coalesce.Statements.
func (acquisitions) Alike(a, b *Request) bool { return a.alike(b) }

// One runs release.sql or release_async.sql. It implements coalesce.Statements.
func (s releases) One(ctx context.Context, req *Request) (got Result, err error) {
	st, args := release, []any{[]byte(req.Name), req.ID, req.Token, req.minHoldUS()}
	if s.commit(req) != nil { // there is no minimum hold
		st, args = releaseAsync, args[:3]
	}
	freed, n, err := s.changeNumber(ctx, s.Work, st, args...)
	if freed {
		got = Result{Token: req.Token, HasWaiter: n > 0}
	}
	return got, err
}

// Many implements coalesce.Statements.
func (s releases) Many(ctx context.Context, reqs []*Request) ([]Result, error) {
	return resultsOf(reqs)(s.ReleaseMany(ctx, reqs))
}

// Alike implements coalesce.Statements.
func (releases) Alike(a, b *Request) bool { return a.alike(b) }

// alike reports whether one statement can serve req and other.
func (req *Request) alike(other *Request) bool {
	return bytes.Equal(req.ID, other.ID) && req.MinHold == other.MinHold && bytes.Equal(req.Metadata, other.Metadata)
}

// resultsOf returns the results of reqs from those of the names. A name may have been released for another request.
func resultsOf(reqs []*Request) func(map[string]Result, error) ([]Result, error) {
	return func(all map[string]Result, err error) ([]Result, error) {
		if err != nil {
			return nil, err
		}
		results := make([]Result, len(reqs))
		for i, req := range reqs {
			if got := all[req.Name]; req.Token == 0 || req.Token == got.Token {
				results[i] = got
			}
		}
		return results, nil
	}
}
