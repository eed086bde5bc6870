package leasetable

import (
	"context"
	"database/sql"
	"encoding/hex"
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
	return s.names(s.work.QueryxContext(ctx, s.textFor(st, parts, "")))
}

// runMany runs a statement that changes the names of parts.
func (s *store) runMany(ctx context.Context, st statement, parts []*part) (sql.Result, error) {
	result, err := s.work.ExecContext(ctx, s.textFor(st, parts, ""))
	return result, classify(err)
}

// textFor is the text of a statement for parts, which are alike. The number is its own, if it has one.
func (s *store) textFor(st statement, parts []*part, number string) string {
	p := parts[0]
	lease, metadata := literal(p.id), literal(p.metadata)
	var b []byte
	for rest := s.texts[st]; rest != ""; {
		before, after, _ := strings.Cut(rest, "{")
		what, after, _ := strings.Cut(after, "}")
		b, rest = append(b, before...), after
		switch what {
		case "names":
			b = appendList(b, parts, appendName)
		case "rows":
			b = appendList(b, parts, appendRow)
			if len(parts) == 1 { // once more: of a single row MariaDB makes two conditions, and uses no index for them
				b = appendRow(append(b, ','), p)
			}
		case "values":
			b = appendList(b, parts, func(b []byte, p *part) []byte {
				b = append(appendName(append(b, '('), p), ",1,"...)
				return append(append(append(append(b, lease...), ','), metadata...), ",UTC_TIMESTAMP(6))"...)
			})
		case "lease":
			b = append(b, lease...)
		case "metadata":
			b = append(b, metadata...)
		case "keep":
			b = appendKeep(b, p)
		case "number":
			b = append(b, number...)
		}
	}
	return string(b)
}

func literal(bytes []byte) string { return "x'" + hex.EncodeToString(bytes) + "'" }

func appendName(b []byte, p *part) []byte {
	return append(hex.AppendEncode(append(b, "x'"...), []byte(p.name)), '\'')
}

func appendRow(b []byte, p *part) []byte {
	return append(appendToken(append(appendName(append(b, '('), p), ','), p), ')')
}

func appendKeep(b []byte, p *part) []byte {
	if p.keep == 0 {
		return append(b, "NULL"...)
	}
	return strconv.AppendInt(b, p.keep.Microseconds(), 10)
}
