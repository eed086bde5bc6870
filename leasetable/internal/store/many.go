package store

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// batchSteps acquires or frees several names at once, on each server in the way that is fastest there.
type batchSteps struct {
	*database
	known           knownTokens
	unreliableNotes atomic.Bool // a session did not keep the notes of a statement; see atOnce
}

func (s *batchSteps) AcquireMany(ctx context.Context, reqs []*Request) (got map[string]Result, err error) {
	req := reqs[0]
	switch s.dialect {
	case schema.MySQL:
		return s.acquireEach(ctx, reqs)
	case schema.SQLite:
		return s.queryNames(ctx, acquireMany, listOf("[]", reqs, appendPair), req.ID, req.Metadata)
	default:
		return s.acquireRows(ctx, reqs)
	}
}

// acquireRows is AcquireMany on PostgreSQL.
func (s *batchSteps) acquireRows(ctx context.Context, reqs []*Request) (got map[string]Result, err error) {
	take := func(st Statement, reqs []*Request) (map[string]Result, error) {
		return s.queryNames(ctx, st, listOf("{}", reqs, appendBytea), reqs[0].ID, reqs[0].Metadata)
	}
	got, err = take(acquireMany, reqs)
	if len(got) == len(reqs) || err != nil && !dberr.OutcomeKnown(err) {
		return got, err
	}
	more, err := take(acquireUnlocked, missing(reqs, got))
	if err != nil {
		return partial(got, err)
	}
	maps.Copy(more, got)
	return more, nil
}

// missing returns those of reqs whose names are not in got.
func missing(reqs []*Request, got map[string]Result) []*Request {
	return slices.DeleteFunc(slices.Clone(reqs), func(req *Request) bool { return got[req.Name].Token != 0 })
}

// partial returns what is known after one statement has acquired got, and the next one, for the other names, has failed
// with err.
func partial(got map[string]Result, err error) (map[string]Result, error) {
	switch {
	case len(got) == 0:
		return nil, err
	case dberr.OutcomeKnown(err): // each of the other requests retries on its own
		return got, nil
	}
	return nil, &dberr.Error{Err: err, Transient: true} // some names were taken, others maybe
}

func (s *batchSteps) ReleaseMany(ctx context.Context, reqs []*Request) (freed map[string]Result, err error) {
	req := reqs[0]
	switch s.dialect {
	case schema.MySQL:
		return s.releaseEach(ctx, reqs)
	case schema.SQLite:
		return s.queryNames(ctx, releaseMany, listOf("[]", reqs, appendPair), req.ID, req.minHoldUS())
	default:
		for _, st := range []Statement{releaseMany, releaseUnlocked} {
			freed, err = s.queryNames(ctx, st, listOf("{}", reqs, appendBytea), req.ID, listOf("{}", reqs, appendToken), req.minHoldUS(), s.commit(req))
			if !dberr.OutcomeKnown(err) {
				break
			}
		}
		return freed, err
	}
}

// queryNames runs a statement that returns the results of names.
func (s *batchSteps) queryNames(ctx context.Context, st Statement, args ...any) (all map[string]Result, err error) {
	err = s.Work.Replicated(func() (err error) {
		all, err = s.names(s.query(ctx, st, args...))
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// names reads the results of names. With an error nothing is known, whatever the rows before it say: the statement may
// have been rolled back, or not be committed yet (I16).
func (s *batchSteps) names(rows *sqlx.Rows, err error) (map[string]Result, error) {
	if err != nil {
		return nil, dberr.Classify(err)
	}
	defer rows.Close()
	all := make(map[string]Result)
	for rows.Next() { // read to the end: the commit, and its failure, come after the rows
		var name raw
		var got Result
		if err := rows.Scan(&name, &got.Token, &got.HasWaiter); err != nil {
			return nil, dberr.Classify(err)
		}
		all[string(name)] = got
	}
	if err := rows.Err(); err != nil {
		return nil, dberr.Classify(err)
	}
	return all, nil
}

// listOf returns a list in brackets of what add appends for each request. In the brackets "{}" it is a PostgreSQL array as
// text, which every driver can send.
func listOf(brackets string, reqs []*Request, add func(b []byte, req *Request) []byte) string {
	b := []byte{brackets[0]}
	for i, req := range reqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, req)
	}
	return string(append(b, brackets[1]))
}

func appendToken(b []byte, req *Request) []byte { return strconv.AppendInt(b, req.Token, 10) }

func appendBytea(b []byte, req *Request) []byte {
	return append(hex.AppendEncode(append(b, `"\\x`...), []byte(req.Name)), '"')
}

func appendPair(b []byte, req *Request) []byte {
	b = append(hex.AppendEncode(append(b, `["`...), []byte(req.Name)), `",`...)
	return append(appendToken(b, req), ']')
}
