package leasetable

import (
	"bytes"
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/coalesce"
)

// request asks for one name to be acquired or released for one caller.
type request struct {
	name    string
	id      []byte // of the lease
	token   int64  // that the name is held with, or was released with; see knownTokens
	minHold time.Duration
	since   int64 // since when the caller waits, if the row of the name may say so

	metadata []byte // to attach
}

// minHoldUS is minHold in microseconds, or nil.
func (req *request) minHoldUS() any {
	if req.minHold == 0 {
		return nil
	}
	return req.minHold.Microseconds()
}

// result is what a statement did to one name.
type result struct {
	Token     int64 // with which the name was acquired or released; 0: it was not
	HasWaiter bool  // the name was released, and another process waits for it
}

type (
	queue = coalesce.Queue[*request, result]
	call  = coalesce.Call[*request, result]
)

// acquisitions and releases are the statements that callers share.
type (
	acquisitions struct{ *store }
	releases     struct{ *store }
)

// newQueues makes the queues of callers who share statements.
func (s *store) newQueues(hand func(f func()) error) {
	s.releases, s.acquires = coalesce.New(hand,
		coalesce.Kind[*request, result]{Statements: releases{s}, Within: attemptTimeout, Serialized: s.oneWriter()},
		coalesce.Kind[*request, result]{Statements: acquisitions{s}, Within: conflictTimeout, Serialized: s.oneWriter()})
}

// acquireSoon acquires a name that is free, together with the names of other callers if there are any. If a shared
// statement was tried before, a statement of its own may wait for the row of the name. So it is for a caller whose
// waiter note only such a statement removes.
func (s *store) acquireSoon(ctx context.Context, req *request, before bool) (result, error) {
	if !s.oneWriter() && (before || req.since != 0 && !s.rowWaits.saturated()) {
		return s.acquirePatiently(ctx, req)
	}
	return s.acquires.Do(ctx, req)
}

// releaseSoon releases a name, together with the names of other callers if there are any. If a shared statement was
// tried before, a statement of its own may wait for the row of the name.
func (s *store) releaseSoon(ctx context.Context, req *request, before bool) (result, error) {
	if !s.oneWriter() && before {
		return s.patiently(ctx, req, s.release)
	}
	return s.releases.Do(ctx, req)
}

// acquirePatiently acquires a name that is free by a statement that may wait for its row.
func (s *store) acquirePatiently(ctx context.Context, req *request) (result, error) {
	return s.patiently(ctx, req, s.acquire)
}

// patiently runs a statement for req once it may wait for a row lock, or need not wait.
func (s *store) patiently(ctx context.Context, req *request, run func(context.Context, *request) (result, error)) (result, error) {
	done, err := s.mayWait(ctx, acquire, row{[]byte(req.name)})
	if err != nil {
		return result{}, err
	}
	defer done()
	return run(ctx, req)
}

// One implements coalesce.Statements.
func (s acquisitions) One(ctx context.Context, req *request) (result, error) {
	return s.acquire(ctx, req)
}

// Many implements coalesce.Statements.
func (s acquisitions) Many(ctx context.Context, reqs []*request) ([]result, error) {
	return resultsOf(reqs)(s.acquireMany(ctx, reqs))
}

// Alike implements coalesce.Statements.
func (acquisitions) Alike(a, b *request) bool { return a.alike(b) }

// One implements coalesce.Statements.
func (s releases) One(ctx context.Context, req *request) (result, error) { return s.release(ctx, req) }

// Many implements coalesce.Statements.
func (s releases) Many(ctx context.Context, reqs []*request) ([]result, error) {
	return resultsOf(reqs)(s.releaseMany(ctx, reqs))
}

// Alike implements coalesce.Statements.
func (releases) Alike(a, b *request) bool { return a.alike(b) }

// alike reports whether one statement can serve req and other.
func (req *request) alike(other *request) bool {
	return bytes.Equal(req.id, other.id) && req.minHold == other.minHold && bytes.Equal(req.metadata, other.metadata)
}

// resultsOf returns the results of reqs from those of the names. A name may have been released for another request.
func resultsOf(reqs []*request) func(map[string]result, error) ([]result, error) {
	return func(all map[string]result, err error) ([]result, error) {
		if err != nil {
			return nil, err
		}
		results := make([]result, len(reqs))
		for i, req := range reqs {
			if got := all[req.name]; req.token == 0 || req.token == got.Token {
				results[i] = got
			}
		}
		return results, nil
	}
}
