package pg

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Info is what the server shows of an advisory lock.
type Info struct {
	Name   string // as given to Inspect; List does not know it, since the key is a hash
	Key    int64  // the key; compare it with Key(name)
	Pair   bool   // the key is a pair: int32(Key>>32) and int32(Key), a key space of its own
	Held   bool   // by a session or a transaction
	Shared bool   // its holders have shares of it

	Holder  sqllock.Holder   // the first of Holders; zero: nobody holds it
	Holders []sqllock.Holder // every session that holds it, in the order of their ids: several if it is shared
}

// List returns the advisory locks of this database, of any program and for any purpose, in order of their keys. Locks
// of transactions are among them and look the same. Inspect documents what is known about a holder.
func (l *Locker) List(ctx context.Context) ([]Info, error) {
	return session.Ask(ctx, l.engine, "list", "*", func(ctx context.Context, c session.Conn[key]) ([]Info, error) {
		return c.(*conn).list(ctx)
	})
}

// holderRow is one row of holder.sql, and the end of one row of list.sql.
type holderRow struct {
	shared bool
	holder sqllock.Holder
	since  *time.Time // nil: not known
}

// columns returns where to scan the columns to.
func (r *holderRow) columns() []any {
	h := &r.holder
	return []any{&r.shared, &h.Session, &h.Owner, &h.Address, &r.since, &h.Waiters}
}

// read returns the holder of the row that was scanned last.
func (r *holderRow) read() sqllock.Holder {
	h := r.holder
	h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
	if r.since != nil {
		h.Since = *r.since
	}
	return h
}

// Holder implements session.Conn.
func (c *conn) Holder(ctx context.Context, k key) (sqllock.Holder, bool, error) {
	var row holderRow
	err := c.pc.QueryRow(ctx, holderSQL, k.n, k.subid(), c.database).Scan(row.columns()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return sqllock.Holder{}, false, nil
	}
	if err != nil {
		return sqllock.Holder{}, false, withLimit(err)
	}
	return row.read(), true, nil
}

// list returns the locks of the database.
func (c *conn) list(ctx context.Context) ([]Info, error) {
	rows, err := c.pc.Query(ctx, listSQL, c.database)
	if err != nil {
		return nil, withLimit(err)
	}
	var infos []Info
	var k key
	var row holderRow
	_, err = pgx.ForEachRow(rows, append([]any{&k.n, &k.pair}, row.columns()...), func() error {
		holder := row.read()
		last := len(infos) - 1
		if last < 0 || infos[last].Key != k.n || infos[last].Pair != k.pair {
			infos = append(infos, Info{Key: k.n, Pair: k.pair, Held: true, Shared: row.shared, Holder: holder})
			last++
		}
		held := infos[last].Holders
		if n := len(held); n > 0 && held[n-1].Session == holder.Session && holder.Session != 0 {
			return nil // the same session has a share, too; without a session it is a prepared transaction
		}
		infos[last].Holders = append(held, holder)
		return nil
	})
	return infos, withLimit(err)
}
