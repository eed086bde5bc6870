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

// Batch has the callers of a store share statements. hand runs a function in another goroutine.
func Batch(s Store, hand func(f func()) error) *Batched {
	b := &Batched{Store: s}
	b.Releases, b.Acquires = coalesce.New(hand, (*Request).alike, s.OneWriter(),
		coalesce.Kind[*Request, Result]{One: s.Release, Many: inOrder(s.ReleaseMany), Within: dberr.AttemptTimeout},
		coalesce.Kind[*Request, Result]{One: s.Acquire, Many: inOrder(s.AcquireMany), Within: dberr.ConflictTimeout})
	return b
}

// InsertNew inserts a name that AcquireFree has not acquired, if this process meets it for the first time: one that has no
// row then costs two statements.
func (b *Batched) InsertNew(ctx context.Context, req *Request, got Result, err error) (Result, error) {
	if b.met.add(req.Name) || got.Token != 0 || err != nil || b.Saturated() {
		return got, err
	}
	got.Token, err = b.Insert(ctx, req)
	return got, err
}

// AcquireSoon acquires a name that is free, together with the names of other callers if there are any. If a shared
// statement was tried before, a statement of its own may wait for the row of the name. So it is for a caller whose
// waiter note only such a statement removes.
func (b *Batched) AcquireSoon(ctx context.Context, req *Request, before bool) (Result, error) {
	if !b.OneWriter() && (before || req.Since != 0 && !b.Saturated()) {
		return b.Acquire(ctx, req.patient())
	}
	return b.Acquires.Do(ctx, req)
}

// ReleaseAgain releases a name for which a shared statement was tried before: a statement of its own may wait for the
// row of the name.
func (b *Batched) ReleaseAgain(ctx context.Context, req *Request) (Result, error) {
	if b.OneWriter() {
		return b.Releases.Do(ctx, req)
	}
	return b.Release(ctx, req.patient())
}

// alike reports whether one statement can serve req and other.
func (req *Request) alike(other *Request) bool {
	return bytes.Equal(req.ID, other.ID) && req.MinHold == other.MinHold && bytes.Equal(req.Metadata, other.Metadata)
}

// inOrder makes a step return the results of its requests in their order, instead of by name. A name may have been
// released for another request.
func inOrder(step func(context.Context, []*Request) (map[string]Result, error)) func(context.Context, []*Request) ([]Result, error) {
	return func(ctx context.Context, reqs []*Request) ([]Result, error) {
		all, err := step(ctx, reqs)
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
