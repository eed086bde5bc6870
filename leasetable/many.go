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
func (s *store) takeMany(ctx context.Context, parts []*part) (took map[string]taken, err error) {
	if len(parts) == 1 {
		token, err := s.acquire(ctx, parts[0])
		return map[string]taken{parts[0].name: {Token: token}}, err
	}
	list := listOf(parts)
	if s.dialect != schema.MySQL {
		err = s.work.replicated(func() (err error) {
			took, err = s.names(s.query(ctx, &s.work, acquireMany, list))
			return err
		})
		return took, err
	}
	if _, err := s.change(ctx, &s.work, acquireMany, list); err != nil {
		return nil, err
	}
	took, err = s.names(s.query(ctx, &s.work, takenMany, list))
	if err != nil { // whatever the database says: it has taken what was free
		return nil, &dbError{err: err, transient: true}
	}
	return took, nil
}

// freeMany frees the names of parts that are held as they say, and that nobody has locked.
func (s *store) freeMany(ctx context.Context, parts []*part) (freed map[string]taken, err error) {
	if len(parts) == 1 {
		p := parts[0]
		freed, wanted, err := s.release(ctx, p)
		if !freed {
			return nil, err
		}
		return map[string]taken{p.name: {p.token, wanted}}, err
	}
	switch s.dialect {
	case schema.Postgres:
		return s.names(s.query(ctx, &s.work, releaseMany, listOf(parts), s.commit(parts)))
	case schema.SQLite:
		return s.names(s.query(ctx, &s.work, releaseMany, listOf(parts)))
	case schema.MySQL:
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
	defer func() { _ = tx.Rollback() }()                                               // after the commit it does nothing
	freed, err = s.names(tx.StmtxContext(ctx, held).QueryxContext(ctx, listOf(parts))) //nolint:sqlclosecheck // tokens does
	if err != nil {
		return nil, err
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return p.tookOf(freed).Token == 0 })
	if _, err := tx.StmtxContext(ctx, release).ExecContext(ctx, listOf(parts)); err != nil {
		return nil, classify(err)
	}
	return freed, classify(tx.Commit())
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

// listOf is what the statements for many are told of parts, as JSON: name and lease in hex, the token,
// for how many microseconds to keep the name, or null, and the metadata in hex.
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
		list = append(list, `,"`...)
		list = hex.AppendEncode(list, p.metadata)
		list = append(list, `"]`...)
	}
	return string(append(list, ']'))
}
