package leasetable

import (
	"context"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/schema"
)

// takeMany takes the names of parts that are free.
func (s *store) takeMany(ctx context.Context, parts []*part) (took map[string]int64, err error) {
	if len(parts) == 1 {
		token, err := s.claim(ctx, acquire, []byte(parts[0].name), parts[0].id)
		return map[string]int64{parts[0].name: token}, err
	}
	list := listOf(parts)
	if s.dialect != schema.MySQL {
		return s.tokens(s.query(ctx, &s.work, acquireMany, list))
	}
	if _, err := s.change(ctx, &s.work, acquireMany, list); err != nil {
		return nil, err
	}
	took, err = s.tokens(s.query(ctx, &s.work, taken, list))
	if err != nil { // whatever the database says: it has taken what was free
		return nil, &dbError{err: err, transient: true}
	}
	return took, nil
}

// freeMany frees the names of parts that are held as they say, and that nobody has locked.
func (s *store) freeMany(ctx context.Context, parts []*part) (freed map[string]int64, err error) {
	if len(parts) == 1 {
		p := parts[0]
		rows, err := s.release(ctx, []byte(p.name), p.id, p.token, p.keep)
		return map[string]int64{p.name: rows * p.token}, err
	}
	if s.dialect != schema.MySQL {
		return s.tokens(s.query(ctx, &s.work, releaseMany, listOf(parts)))
	}
	held, err := s.work.stmt(ctx, heldMany, s.texts[heldMany])
	if err != nil {
		return nil, classify(err)
	}
	release, err := s.work.stmt(ctx, releaseMany, s.texts[releaseMany])
	if err != nil {
		return nil, classify(err)
	}
	tx, err := s.work.BeginTxx(ctx, nil)
	if err != nil {
		return nil, classify(err)
	}
	defer func() { _ = tx.Rollback() }()                                                // after the commit it does nothing
	freed, err = s.tokens(tx.StmtxContext(ctx, held).QueryxContext(ctx, listOf(parts))) //nolint:sqlclosecheck // tokens does
	if err != nil {
		return nil, err
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.tookOf(freed) == 0 })
	if _, err := tx.StmtxContext(ctx, release).ExecContext(ctx, listOf(parts)); err != nil {
		return nil, classify(err)
	}
	return freed, classify(tx.Commit())
}

// tokens reads names and their tokens.
func (s *store) tokens(rows *sqlx.Rows, err error) (map[string]int64, error) {
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	tokens := make(map[string]int64)
	for rows.Next() { // to the end: the commit, and its failure, come after the rows
		var name []byte
		var token int64
		if err := rows.Scan(&name, &token); err != nil {
			return nil, classify(err)
		}
		tokens[string(name)] = token
	}
	return tokens, classify(rows.Err())
}

// listOf is what the statements for many are told of parts, as JSON: name and lease in hex, the token,
// and for how many microseconds to keep the name, or null.
func listOf(parts []*part) string {
	list := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, `["`...)
		list = hex.AppendEncode(list, []byte(p.name))
		list = append(list, `","`...)
		list = hex.AppendEncode(list, p.id)
		list = append(list, `",`...)
		list = strconv.AppendInt(list, p.token, 10)
		if p.keep > 0 {
			list = append(list, ',')
			list = strconv.AppendInt(list, p.keep.Microseconds(), 10)
		} else {
			list = append(list, ",null"...)
		}
		list = append(list, ']')
	}
	return string(append(list, ']'))
}
