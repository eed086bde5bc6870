package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// On MySQL and MariaDB one statement reads, and a second one changes the rows that the first has read: see "Locked rows" in
// chapter 6 of docs/design.md.

// acquireEach is AcquireMany on MySQL and MariaDB.
func (s *batchSteps) acquireEach(ctx context.Context, reqs []*Request) (map[string]Result, error) {
	got, done, err := s.atOnce(ctx, acquireAtOnce, reqs)
	if !done {
		got, err = s.acquireRead(ctx, reqs)
	}
	if err != nil || len(got) == len(reqs) {
		return got, err
	}
	rest := missing(reqs, got)
	known, err := s.readMany(ctx, knownMany, rest)
	absent := missing(rest, known)
	if err == nil && len(absent) > 0 {
		slices.SortFunc(absent, func(req, q *Request) int { return strings.Compare(req.Name, q.Name) }) // all processes insert in this order
		_, err = s.runMany(ctx, insertMany, absent)
		if exists(err) {
			return got, nil
		}
	}
	if err != nil {
		return partial(got, err)
	}
	for _, req := range absent {
		got[req.Name] = Result{Token: 1}
	}
	return got, nil
}

// acquireRead reads which names of reqs are free, and takes those.
func (s *batchSteps) acquireRead(ctx context.Context, reqs []*Request) (map[string]Result, error) {
	free, err := s.readMany(ctx, freeMany, reqs)
	if err != nil || len(free) == 0 {
		return free, err
	}
	reqs = as(free, reqs)
	changed, err := s.runMany(ctx, acquireMany, reqs)
	if err != nil {
		return nil, err
	}
	rows, err := changed.RowsAffected()
	if err == nil && rows == int64(len(reqs)) {
		for name, t := range free {
			free[name] = Result{Token: t.Token + 1}
		}
		return free, nil
	}
	var got map[string]Result
	if err == nil {
		got, err = s.readMany(ctx, takenMany, reqs) // another caller has taken some
	}
	if err == nil && int64(len(got)) != rows { // maybe because of a proxy that reads from a replica
		err = fmt.Errorf("leasetable: %d names were taken, and %d can be read", rows, len(got))
	}
	if err != nil { // whatever the database says: the other names were taken
		return nil, &dberr.Error{Err: err, Transient: true}
	}
	return got, nil
}

// releaseEach is ReleaseMany on MySQL and MariaDB. A name that is lost between the two statements was held until then,
// and counts as freed.
func (s *batchSteps) releaseEach(ctx context.Context, reqs []*Request) (map[string]Result, error) {
	if freed, done, err := s.atOnce(ctx, releaseAtOnce, reqs); done {
		if reqs[0].MinHold == 0 {
			s.known.remember(freed)
		}
		return freed, err
	}
	held, err := s.readMany(ctx, heldMany, reqs)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	if _, err := s.runMany(ctx, releaseMany, as(held, reqs)); err != nil {
		return nil, err
	}
	return held, nil
}

// as returns those of reqs that were read, with the tokens that were read.
func as(seen map[string]Result, reqs []*Request) (all []*Request) {
	for _, req := range reqs {
		if s, ok := seen[req.Name]; ok {
			q := *req
			q.Token = s.Token
			all = append(all, &q)
		}
	}
	return all
}

// readMany runs a statement that reads the names of reqs.
func (s *batchSteps) readMany(ctx context.Context, st Statement, reqs []*Request) (map[string]Result, error) {
	f := s.fill(st, reqs)
	return s.names(s.Work.QueryxContext(ctx, string(f.text), f.args...))
}

// runMany runs a statement that changes the names of reqs.
func (s *batchSteps) runMany(ctx context.Context, st Statement, reqs []*Request) (sql.Result, error) {
	f := s.fill(st, reqs)
	result, err := s.Work.ExecContext(ctx, string(f.text), f.args...)
	return result, dberr.Classify(err)
}
