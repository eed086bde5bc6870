package leasetable

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/schema"
)

// takeMany takes the names of parts, which are alike, that are free.
func (s *store) takeMany(ctx context.Context, parts []*part) (took map[string]taken, err error) {
	p := parts[0]
	switch s.dialect {
	case schema.MySQL:
		return s.takeEach(ctx, parts)
	case schema.SQLite:
		return s.names(s.query(ctx, &s.work, acquireMany, jsonList(parts), p.id, p.metadata))
	default:
		return s.takeRows(ctx, parts)
	}
}

// takeRows does what takeMany does on PostgreSQL. To lock the rows that nobody else has locked and then to change them
// costs twice as much as to change them.
func (s *store) takeRows(ctx context.Context, parts []*part) (took map[string]taken, err error) {
	take := func(st statement, parts []*part) (took map[string]taken, err error) {
		err = s.work.replicated(func() (err error) {
			took, err = s.names(s.query(ctx, &s.work, st, array(parts, eachName), parts[0].id, parts[0].metadata))
			return err
		})
		return took, err
	}
	took, err = take(acquireMany, parts)
	if len(took) == len(parts) || err != nil && !answered(err) {
		return took, err
	}
	rest := slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return took[p.name].Token != 0 })
	more, err := take(acquireUnlocked, rest)
	if err != nil && len(took) > 0 { // whatever the database says: it has taken some
		return nil, &dbError{err: err, transient: true}
	}
	maps.Copy(more, took)
	return more, err
}

// freeMany frees the names of parts, which are alike, that are held as they say, and that nobody has locked.
func (s *store) freeMany(ctx context.Context, parts []*part) (freed map[string]taken, err error) {
	p := parts[0]
	switch s.dialect {
	case schema.MySQL:
		return s.freeEach(ctx, parts)
	case schema.SQLite:
		return s.names(s.query(ctx, &s.work, releaseMany, jsonList(parts), p.id, p.keepUS()))
	default:
		for _, st := range []statement{releaseMany, releaseUnlocked} {
			freed, err = s.names(s.query(ctx, &s.work, st, array(parts, eachName), p.id, array(parts, "%[2]d"), p.keepUS(), s.commit(p)))
			if !answered(err) {
				break
			}
		}
		return freed, err
	}
}

// names reads what became of names.
func (s *store) names(rows *sqlx.Rows, err error) (map[string]taken, error) {
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	all := make(map[string]taken)
	for rows.Next() { // to the end: the commit, and its failure, come after the rows
		var name []byte
		var took taken
		if err := rows.Scan(&name, &took.Token, &took.Wanted); err != nil {
			return nil, classify(err)
		}
		all[string(name)] = took
	}
	return all, classify(rows.Err())
}

// listOf formats each part, its name being the first argument and its token the second, with commas between them.
func listOf(parts []*part, format string) string {
	var list []byte
	for i, p := range parts {
		if i > 0 {
			list = append(list, ',')
		}
		list = fmt.Appendf(list, format, p.name, p.token)
	}
	return string(list)
}

func jsonList(parts []*part) string { return "[" + listOf(parts, `["%[1]x",%[2]d]`) + "]" }

// array is an array of PostgreSQL as text, which every driver can send.
func array(parts []*part, format string) string { return "{" + listOf(parts, format) + "}" }

const eachName = `"\\x%[1]x"`
