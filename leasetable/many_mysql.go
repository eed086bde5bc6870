package leasetable

import (
	"context"
	"database/sql"
	"slices"
	"strings"
)

// On MySQL and MariaDB an UPDATE does not tell which rows it changed, and waits for those that others
// have locked. So one statement looks and a second changes what the first has seen: two round trips
// and one commit. For a few names they are prepared; for more, that is no faster, and the names are written into
// their texts.

// few is for how many names a prepared statement is; the last one stands for those that are missing.
const few = 16

// duplicate is the error for a row that is there.
const duplicate = "mysql 1062"

// takeEach does what takeMany does.
func (s *store) takeEach(ctx context.Context, parts []*part) (map[string]taken, error) {
	took, done, err := s.atOnce(ctx, acquireAtOnce, parts)
	if !done {
		took, err = s.takeSeen(ctx, parts)
	}
	if err != nil || len(took) == len(parts) {
		return took, err
	}
	rest := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return took[p.name].Token != 0 })
	known, err := s.seen(ctx, knownMany, rest)
	absent := slices.DeleteFunc(rest, func(p *part) bool { return known[p.name].Token != 0 })
	if err == nil && len(absent) > 0 {
		slices.SortFunc(absent, func(p, q *part) int { return strings.Compare(p.name, q.name) }) // as everybody does
		_, err = s.runMany(ctx, insertMany, absent)
		if codeOf(err) == duplicate {
			return took, nil
		}
	}
	if answered(err) && len(took) > 0 { // each of the rest asks for itself
		return took, nil
	}
	if err != nil && len(took) > 0 { // it has taken some, and others maybe
		return nil, &dbError{err: err, transient: true}
	}
	if err != nil {
		return nil, err
	}
	for _, p := range absent {
		took[p.name] = taken{Token: 1}
	}
	return took, nil
}

// takeSeen looks which names of parts are free, and takes those.
func (s *store) takeSeen(ctx context.Context, parts []*part) (map[string]taken, error) {
	free, err := s.seen(ctx, freeMany, parts)
	if err != nil || len(free) == 0 {
		return free, err
	}
	parts = as(free, parts)
	result, err := s.runMany(ctx, acquireMany, parts)
	if err != nil {
		return nil, err
	}
	if n, err := result.RowsAffected(); err == nil && n == int64(len(parts)) {
		for name, t := range free {
			free[name] = taken{Token: t.Token + 1}
		}
		return free, nil
	}
	took, err := s.seen(ctx, takenMany, parts) // somebody else has taken some
	if err != nil {                            // whatever the database says: it has taken the others
		return nil, &dbError{err: err, transient: true}
	}
	return took, nil
}

// freeEach does what freeMany does. A name that is lost between the two statements was held until then.
func (s *store) freeEach(ctx context.Context, parts []*part) (map[string]taken, error) {
	if freed, done, err := s.atOnce(ctx, releaseAtOnce, parts); done {
		if parts[0].keep == 0 {
			s.known.remember(freed)
		}
		return freed, err
	}
	held, err := s.seen(ctx, heldMany, parts)
	if err != nil || len(held) == 0 {
		return nil, err
	}
	if _, err := s.runMany(ctx, releaseMany, as(held, parts)); err != nil {
		return nil, err
	}
	return held, nil
}

// as returns those of parts that were seen, with the tokens that they were seen with.
func as(seen map[string]taken, parts []*part) (all []*part) {
	for _, p := range parts {
		if s, ok := seen[p.name]; ok {
			q := *p
			q.token = s.Token
			all = append(all, &q)
		}
	}
	return all
}

// seen runs a statement that looks at the names of parts.
func (s *store) seen(ctx context.Context, st statement, parts []*part) (map[string]taken, error) {
	f := s.fill(st, parts)
	return s.names(s.work.QueryxContext(ctx, string(f.text), f.args...))
}

// runMany runs a statement that changes the names of parts.
func (s *store) runMany(ctx context.Context, st statement, parts []*part) (sql.Result, error) {
	f := s.fill(st, parts)
	result, err := s.work.ExecContext(ctx, string(f.text), f.args...)
	return result, classify(err)
}

// fill makes a statement for parts, which are alike.
func (s *store) fill(st statement, parts []*part) *filling {
	f := &filling{marked: len(parts) <= few && st != insertMany}
	if f.marked {
		parts = slices.Concat(parts, slices.Repeat(parts[len(parts)-1:], few-len(parts)))
	}
	f.fill(s.texts[st], parts, "")
	return f
}

// textFor is the text of a statement for parts, which are alike. The number is its own, if it has one.
func (s *store) textFor(st statement, parts []*part, number string) string {
	var f filling
	f.fill(s.texts[st], parts, number)
	return string(f.text)
}
