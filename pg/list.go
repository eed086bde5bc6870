package pg

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Info is what the server says of an advisory lock.
type Info struct {
	Name   string // as Inspect was asked; List does not know it, as a hash does not tell
	Key    int64  // the key; compare it with Key(name)
	Pair   bool   // the key is a pair: int32(Key>>32) and int32(Key), a key space of its own
	Held   bool   // by a session, or a transaction
	Shared bool   // the holder has a share, and others may have one
	Holder sqllock.Holder
}

// List returns the advisory locks of this database, whoever took them and for what, in order of
// their keys; a lock that is shared has one entry for each holder. Locks of transactions are among them and
// look the same. What is known of a holder is said at Inspect.
func (l *Locker) List(ctx context.Context) ([]Info, error) {
	return session.Ask(ctx, l.engine, "list", "*", func(ctx context.Context, c session.Conn[key]) ([]Info, error) {
		return c.(*conn).list(ctx)
	})
}

func (c *conn) list(ctx context.Context) ([]Info, error) {
	rows, err := c.pc.Query(ctx, listSQL, c.database)
	if err != nil {
		return nil, withLimit(err)
	}
	infos, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (info Info, err error) {
		var since *time.Time
		info.Held = true
		h := &info.Holder
		err = row.Scan(&info.Key, &info.Pair, &info.Shared, &h.Session, &h.Owner, &h.Address, &since, &h.Waiters)
		h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
		if since != nil {
			h.Since = *since
		}
		return info, err
	})
	return infos, withLimit(err)
}
