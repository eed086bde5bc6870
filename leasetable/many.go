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

// takeRows does what takeMany does on PostgreSQL.
func (s *store) takeRows(ctx context.Context, parts []*part) (took map[string]taken, err error) {
	take := func(st statement, parts []*part) (took map[string]taken, err error) {
		err = s.work.replicated(func() (err error) {
			took, err = s.names(s.query(ctx, &s.work, st, array(parts, appendBytea), parts[0].id, parts[0].metadata))
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
	switch {
	case answered(err) && len(took) > 0: // each of the rest asks for itself
		return took, nil
	case err != nil && len(took) > 0: // it has taken some, and others maybe
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
			freed, err = s.names(s.query(ctx, &s.work, st, array(parts, appendBytea), p.id, array(parts, appendToken), p.keepUS(), s.commit(p)))
			if !answered(err) {
				break
			}
		}
		return freed, err
	}
}

// names reads what became of names. With an error nothing is known, whatever the rows say that came before it: the statement
// may have been undone, or not be committed yet.
func (s *store) names(rows *sqlx.Rows, err error) (map[string]taken, error) {
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	all := make(map[string]taken)
	for rows.Next() { // to the end: the commit, and its failure, come after the rows
		var name raw
		var took taken
		if err := rows.Scan(&name, &took.Token, &took.Wanted); err != nil {
			return nil, classify(err)
		}
		all[string(name)] = took
	}
	if err := rows.Err(); err != nil {
		return nil, classify(err)
	}
	return all, nil
}

// appendList appends each part as add does, with commas between them.
func appendList(b []byte, parts []*part, add func(b []byte, p *part) []byte) []byte {
	for i, p := range parts {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, p)
	}
	return b
}

func appendToken(b []byte, p *part) []byte { return strconv.AppendInt(b, p.token, 10) }

func jsonList(parts []*part) string {
	return string(append(appendList([]byte{'['}, parts, func(b []byte, p *part) []byte {
		b = append(hex.AppendEncode(append(b, `["`...), []byte(p.name)), `",`...)
		return append(appendToken(b, p), ']')
	}), ']'))
}

// array is an array of PostgreSQL as text, which every driver can send.
func array(parts []*part, add func(b []byte, p *part) []byte) string {
	return string(append(appendList([]byte{'{'}, parts, add), '}'))
}

func appendBytea(b []byte, p *part) []byte {
	return append(hex.AppendEncode(append(b, `"\\x`...), []byte(p.name)), '"')
}
