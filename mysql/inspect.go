package mysql

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Inspect returns the connection that holds the lock called name, in this process or another, if there is one. Of its
// details, it returns those that the user may see:
//   - Address: for connections of the same user, and with the privilege PROCESS for all. MySQL shows none with
//     performance_schema=OFF.
//   - Owner: the attribute program_name, for connections of the same user, and with SELECT on
//     performance_schema.session_connect_attrs for all.
//   - Waiters: with SELECT on performance_schema.metadata_locks; a Locker counts as one, however many of
//     its goroutines wait. Zero may also mean that they cannot be seen.
//
// MariaDB shows Owner and Waiters only when it was started with performance_schema=ON, and Waiters
// only while the instrument wait/lock/metadata/sql/mdl is enabled. Since is never known: no table
// has the time when a connection began or took a lock.
func (l *Locker) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (Info, error) {
	const op = "inspect"
	if _, err := want(op, name, opts); err != nil {
		return Info{}, err
	}
	return l.look(ctx, op, name)
}

// look asks the server for the holder of the lock called name, and for the details that the user may see.
func (l *Locker) look(ctx context.Context, op, name string) (Info, error) {
	return session.Ask(ctx, l.engine, op, name, func(ctx context.Context, c session.Conn[string]) (info Info, err error) {
		mc := c.(*conn)
		info = Info{Name: name, ServerName: ServerName(mc.database, name)}
		info.Holder, info.Held, err = mc.Holder(ctx, name)
		if err == nil && info.Held {
			err = mc.details(ctx, name, &info.Holder)
			info.Holders = []sqllock.Holder{info.Holder}
		}
		return info, err
	})
}

// details adds what the statement for the holder does not return: it takes ten times as long, too long for a failed
// try.
func (c *conn) details(ctx context.Context, name string, h *sqllock.Holder) error {
	err := c.sc.QueryRowContext(ctx, detailsSQL, h.Session, ServerName(c.database, name)).Scan(&h.Owner, &h.Waiters)
	if mayNotSee(err) {
		err = c.sc.QueryRowContext(ctx, ownerSQL, h.Session).Scan(&h.Owner)
	}
	h.Owner = strings.TrimPrefix(h.Owner, "sqllock/")
	return err
}
