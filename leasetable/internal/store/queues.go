package store

import (
	"bytes"
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Batched is a Store whose callers share statements.
type Batched struct {
	Store
	Acquires, Releases *queue

	met metNames
}

// Call is a request that shares a statement with others.
type Call = coalesce.Call[*Request, Result]

type queue = coalesce.Queue[*Request, Result]

// acquisitions and releases are the statements that callers share.
type (
	acquisitions struct{ Store }
	releases     struct{ Store }
)

// Batch has the callers of a store share statements. hand runs a function in another goroutine.
func Batch(s Store, hand func(f func()) error) *Batched {
	b := &Batched{Store: s}
	b.Releases, b.Acquires = coalesce.New(hand,
		coalesce.Kind[*Request, Result]{Statements: releases{s}, Within: dberr.AttemptTimeout, Serialized: s.OneWriter()},
		coalesce.Kind[*Request, Result]{Statements: acquisitions{s}, Within: dberr.ConflictTimeout, Serialized: s.OneWriter()})
	return b
}

// AcquireFree acquires a name that is free. It inserts one that this process meets for the first time and that has no
// row: a name that is new then costs two statements.
func (b *Batched) AcquireFree(ctx context.Context, req *Request) (Result, error) {
	got, err := b.Store.AcquireFree(ctx, req)
	if b.met.add(req.Name) || got.Token != 0 || err != nil || b.OneWriter() || b.Saturated() {
		return got, err
	}
	got.Token, err = b.Store.Insert(ctx, req)
	return got, err
}

// AcquireSoon acquires a name that is free, together with the names of other callers if there are any. If a shared
// statement was tried before, a statement of its own may wait for the row of the name. So it is for a caller whose
// waiter note only such a statement removes.
func (b *Batched) AcquireSoon(ctx context.Context, req *Request, before bool) (Result, error) {
	if !b.OneWriter() && (before || req.Since != 0 && !b.Saturated()) {
		return b.AcquirePatiently(ctx, req)
	}
	return b.Acquires.Do(ctx, req)
}

// Insert acquires a name that has no row. Where all writers queue for one lock, it shares a statement.
func (b *Batched) Insert(ctx context.Context, req *Request) (token int64, err error) {
	if b.OneWriter() {
		got, err := b.Acquires.Do(ctx, req)
		return got.Token, err
	}
	return b.Store.Insert(ctx, req)
}

// ReleaseAgain releases a name for which a shared statement was tried before: a statement of its own may wait for the
// row of the name.
func (b *Batched) ReleaseAgain(ctx context.Context, req *Request) (Result, error) {
	if b.OneWriter() {
		return b.Releases.Do(ctx, req)
	}
	return b.ReleasePatiently(ctx, req)
}

// One implements coalesce.Statements.
func (s acquisitions) One(ctx context.Context, req *Request) (Result, error) {
	return s.Acquire(ctx, req)
}

// Many implements coalesce.Statements.
func (s acquisitions) Many(ctx context.Context, reqs []*Request) ([]Result, error) {
	return resultsOf(reqs)(s.AcquireMany(ctx, reqs))
}

// Alike implements coalesce.Statements.
func (acquisitions) Alike(a, b *Request) bool { return a.alike(b) }

// One implements coalesce.Statements.
func (s releases) One(ctx context.Context, req *Request) (Result, error) { return s.Release(ctx, req) }

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
