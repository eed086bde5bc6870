package pg

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

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

// holderColumns returns where to scan what holder.sql and list.sql tell of a holder.
func holderColumns(shared *bool, h *sqllock.Holder) []any {
	return []any{shared, &h.Session, &h.Owner, &h.Address, (*zeronull.Timestamptz)(&h.Since), &h.Waiters}
}

func (c *conn) Holder(ctx context.Context, k key) (sqllock.Holder, bool, error) {
	var h sqllock.Holder
	err := c.pc.QueryRow(ctx, holderSQL, k.n, k.subid(), c.database).Scan(holderColumns(new(bool), &h)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return sqllock.Holder{}, false, nil
	}
	if err != nil {
		return sqllock.Holder{}, false, withLimit(err)
	}
	h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
	return h, true, nil
}

// list returns the locks of the database.
func (c *conn) list(ctx context.Context) ([]Info, error) {
	rows, err := c.pc.Query(ctx, listSQL, c.database)
	if err != nil {
		return nil, withLimit(err)
	}
	var infos []Info
	info := Info{Held: true}
	h := &info.Holder
	_, err = pgx.ForEachRow(rows, append([]any{&info.Key, &info.Pair}, holderColumns(&info.Shared, h)...), func() error {
		h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
		last := len(infos) - 1
		if last < 0 || infos[last].Key != info.Key || infos[last].Pair != info.Pair {
			infos = append(infos, info)
			last++
		}
		held := infos[last].Holders
		if n := len(held); n > 0 && held[n-1].Session == h.Session && h.Session != 0 {
			return nil // the same session has a share, too; without a session it is a prepared transaction
		}
		infos[last].Holders = append(held, *h)
		return nil
	})
	return infos, withLimit(err)
}
