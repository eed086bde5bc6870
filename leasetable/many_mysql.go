package leasetable

import (
	"context"
	"database/sql"
	"slices"
	"strings"
)

// On MySQL and MariaDB an UPDATE does not return which rows it changed, and waits for row locks. So one statement
// reads, and a second one changes the rows that the first has read: two round trips and one commit. For a few names the
// statements are prepared. For more names that is no faster, and the names are written into the text.

// few is the number of names of a prepared statement. Copies of the last name stand in for missing ones.
const few = 16

// duplicate is the code of the error for a row that exists already.
const duplicate = "mysql 1062"

// acquireEach is acquireMany on MySQL and MariaDB.
func (s *store) acquireEach(ctx context.Context, reqs []*request) (map[string]result, error) {
	got, done, err := s.atOnce(ctx, acquireAtOnce, reqs)
	if !done {
		got, err = s.acquireRead(ctx, reqs)
	}
	if err != nil || len(got) == len(reqs) {
		return got, err
	}
	rest := slices.DeleteFunc(slices.Clone(reqs), func(req *request) bool { return got[req.name].Token != 0 })
	known, err := s.readMany(ctx, knownMany, rest)
	absent := slices.DeleteFunc(rest, func(req *request) bool { return known[req.name].Token != 0 })
	if err == nil && len(absent) > 0 {
		slices.SortFunc(absent, func(req, q *request) int { return strings.Compare(req.name, q.name) }) // all processes insert in this order
		_, err = s.runMany(ctx, insertMany, absent)
		if codeOf(err) == duplicate {
			return got, nil
		}
	}
	if outcomeKnown(err) && len(got) > 0 { // each of the other requests retries on its own
		return got, nil
	}
	if err != nil && len(got) > 0 { // some names were taken, others maybe
		return nil, &dbError{err: err, transient: true}
	}
	if err != nil {
		return nil, err
	}
	for _, req := range absent {
		got[req.name] = result{Token: 1}
	}
	return got, nil
}

// acquireRead reads which names of reqs are free, and takes those.
func (s *store) acquireRead(ctx context.Context, reqs []*request) (map[string]result, error) {
	free, err := s.readMany(ctx, freeMany, reqs)
	if err != nil || len(free) == 0 {
		return free, err
	}
	reqs = as(free, reqs)
	changed, err := s.runMany(ctx, acquireMany, reqs)
	if err != nil {
		return nil, err
	}
	if n, err := changed.RowsAffected(); err == nil && n == int64(len(reqs)) {
		for name, t := range free {
			free[name] = result{Token: t.Token + 1}
		}
		return free, nil
	}
	got, err := s.readMany(ctx, takenMany, reqs) // another caller has taken some
	if err != nil {                              // whatever the database says: the other names were taken
		return nil, &dbError{err: err, transient: true}
	}
	return got, nil
}

// releaseEach is releaseMany on MySQL and MariaDB. A name that is lost between the two statements was held until then,
// and counts as freed.
func (s *store) releaseEach(ctx context.Context, reqs []*request) (map[string]result, error) {
	if freed, done, err := s.atOnce(ctx, releaseAtOnce, reqs); done {
		if reqs[0].minHold == 0 {
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
func as(seen map[string]result, reqs []*request) (all []*request) {
	for _, req := range reqs {
		if s, ok := seen[req.name]; ok {
			q := *req
			q.token = s.Token
			all = append(all, &q)
		}
	}
	return all
}

// readMany runs a statement that reads the names of reqs.
func (s *store) readMany(ctx context.Context, st statement, reqs []*request) (map[string]result, error) {
	f := s.fill(st, reqs)
	return s.names(s.work.QueryxContext(ctx, string(f.text), f.args...))
}

// runMany runs a statement that changes the names of reqs.
func (s *store) runMany(ctx context.Context, st statement, reqs []*request) (sql.Result, error) {
	f := s.fill(st, reqs)
	result, err := s.work.ExecContext(ctx, string(f.text), f.args...)
	return result, classify(err)
}

// fill returns a statement for reqs, which are alike.
func (s *store) fill(st statement, reqs []*request) *statementText {
	f := &statementText{marked: len(reqs) <= few && st != insertMany}
	if f.marked {
		reqs = slices.Concat(reqs, slices.Repeat(reqs[len(reqs)-1:], few-len(reqs)))
	}
	f.fill(s.texts[st].text, reqs, "")
	return f
}

// textFor returns the text of a statement for reqs, which are alike. The number identifies this run, if the text notes
// it.
func (s *store) textFor(st statement, reqs []*request, number string) string {
	var f statementText
	f.fill(s.texts[st].text, reqs, number)
	return string(f.text)
}
