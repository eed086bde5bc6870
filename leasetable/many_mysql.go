package leasetable

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// On MySQL and MariaDB an UPDATE does not tell which rows it changed, and waits for those that others
// have locked. So one statement looks and a second changes what the first has seen: two round trips
// and one commit. What the names are is written into their texts, as hexadecimal literals: to prepare them costs more.

// duplicate is the error for a row that is there.
const duplicate = "mysql 1062"

// takeEach does what takeMany does.
func (s *store) takeEach(ctx context.Context, parts []*part) (map[string]taken, error) {
	free, err := s.seen(ctx, freeMany, parts)
	if err != nil {
		return nil, err
	}
	took, err := s.takeAsSeen(ctx, parts, free)
	if err != nil || len(free) == len(parts) {
		return took, err
	}
	rest := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return free[p.name].Token != 0 })
	known, err := s.seen(ctx, knownMany, rest)
	absent := slices.DeleteFunc(rest, func(p *part) bool { return known[p.name].Token != 0 })
	if err == nil && len(absent) > 0 {
		slices.SortFunc(absent, func(p, q *part) int { return strings.Compare(p.name, q.name) }) // as everybody does
		_, err = s.runMany(ctx, insertMany, absent)
		if codeOf(err) == duplicate {
			return took, nil
		}
	}
	if err != nil && len(took) > 0 { // whatever the database says: it has taken some
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

// takeAsSeen takes names of parts that were seen to be free.
func (s *store) takeAsSeen(ctx context.Context, parts []*part, free map[string]taken) (map[string]taken, error) {
	parts = as(free, parts)
	if len(parts) == 0 {
		return free, nil
	}
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
	return s.names(s.work.QueryxContext(ctx, s.textFor(st, parts)))
}

// runMany runs a statement that changes the names of parts.
func (s *store) runMany(ctx context.Context, st statement, parts []*part) (sql.Result, error) {
	result, err := s.work.ExecContext(ctx, s.textFor(st, parts))
	return result, classify(err)
}

// textFor is the text of a statement for parts, which are alike.
func (s *store) textFor(st statement, parts []*part) string {
	p := parts[0]
	lease, metadata, keep := fmt.Sprintf("x'%x'", p.id), fmt.Sprintf("x'%x'", p.metadata), "NULL"
	if p.keep > 0 {
		keep = strconv.FormatInt(p.keep.Microseconds(), 10)
	}
	row := "(x'%[1]x',%[2]d)"
	if st == insertMany {
		row = "(x'%[1]x',1," + lease + "," + metadata + ",UTC_TIMESTAMP(6))"
	}
	return strings.NewReplacer(
		"{names}", listOf(parts, "x'%[1]x'"),
		"{rows}", listOf(parts, row),
		"{lease}", lease,
		"{metadata}", metadata,
		"{keep}", keep,
	).Replace(s.texts[st])
}
