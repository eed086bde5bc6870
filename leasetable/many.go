package leasetable

import (
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/schema"
)

// acquireMany takes those names of reqs that are free. The requests are alike.
func (s *store) acquireMany(ctx context.Context, reqs []*request) (got map[string]result, err error) {
	req := reqs[0]
	switch s.dialect {
	case schema.MySQL:
		return s.acquireEach(ctx, reqs)
	case schema.SQLite:
		return s.names(s.query(ctx, s.work, acquireMany, jsonList(reqs), req.id, req.metadata))
	default:
		return s.acquireRows(ctx, reqs)
	}
}

// acquireRows is acquireMany on PostgreSQL.
func (s *store) acquireRows(ctx context.Context, reqs []*request) (got map[string]result, err error) {
	take := func(st statement, reqs []*request) (got map[string]result, err error) {
		err = s.work.replicated(func() (err error) {
			got, err = s.names(s.query(ctx, s.work, st, array(reqs, appendBytea), reqs[0].id, reqs[0].metadata))
			return err
		})
		return got, err
	}
	got, err = take(acquireMany, reqs)
	if len(got) == len(reqs) || err != nil && !outcomeKnown(err) {
		return got, err
	}
	rest := slices.DeleteFunc(slices.Clone(reqs), func(req *request) bool { return got[req.name].Token != 0 })
	more, err := take(acquireUnlocked, rest)
	switch {
	case outcomeKnown(err) && len(got) > 0: // each of the other requests retries on its own
		return got, nil
	case err != nil && len(got) > 0: // some names were taken, others maybe
		return nil, &dbError{err: err, transient: true}
	}
	maps.Copy(more, got)
	return more, err
}

// releaseMany frees those names of reqs that are held as requested and whose rows nobody has locked. The requests are
// alike.
func (s *store) releaseMany(ctx context.Context, reqs []*request) (freed map[string]result, err error) {
	req := reqs[0]
	switch s.dialect {
	case schema.MySQL:
		return s.releaseEach(ctx, reqs)
	case schema.SQLite:
		return s.names(s.query(ctx, s.work, releaseMany, jsonList(reqs), req.id, req.minHoldUS()))
	default:
		for _, st := range []statement{releaseMany, releaseUnlocked} {
			freed, err = s.names(s.query(ctx, s.work, st, array(reqs, appendBytea), req.id, array(reqs, appendToken), req.minHoldUS(), s.commit(req)))
			if !outcomeKnown(err) {
				break
			}
		}
		return freed, err
	}
}

// names reads the results of names. With an error nothing is known, whatever the rows before it say: the statement may
// have been rolled back, or not be committed yet.
func (s *store) names(rows *sqlx.Rows, err error) (map[string]result, error) {
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	all := make(map[string]result)
	for rows.Next() { // read to the end: the commit, and its failure, come after the rows
		var name raw
		var got result
		if err := rows.Scan(&name, &got.Token, &got.HasWaiter); err != nil {
			return nil, classify(err)
		}
		all[string(name)] = got
	}
	if err := rows.Err(); err != nil {
		return nil, classify(err)
	}
	return all, nil
}

// appendList appends each request as add does, with commas between them.
func appendList(b []byte, reqs []*request, add func(b []byte, req *request) []byte) []byte {
	for i, req := range reqs {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, req)
	}
	return b
}

func appendToken(b []byte, req *request) []byte { return strconv.AppendInt(b, req.token, 10) }

func jsonList(reqs []*request) string {
	return string(append(appendList([]byte{'['}, reqs, func(b []byte, req *request) []byte {
		b = append(hex.AppendEncode(append(b, `["`...), []byte(req.name)), `",`...)
		return append(appendToken(b, req), ']')
	}), ']'))
}

// array returns a PostgreSQL array as text, which every driver can send.
func array(reqs []*request, add func(b []byte, req *request) []byte) string {
	return string(append(appendList([]byte{'{'}, reqs, add), '}'))
}

func appendBytea(b []byte, req *request) []byte {
	return append(hex.AppendEncode(append(b, `"\\x`...), []byte(req.name)), '"')
}
