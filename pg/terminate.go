package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/session"
)

// Terminate ends the session that holds the lock called name (pg_terminate_backend). It returns the holder, and whether
// it ended a session: not when nobody held the lock, or when that session gave it up before. It returns when that
// session no longer holds the lock. Every other lock of the session is lost, too. Of several sessions that share the
// lock it ends one.
//
// Terminate requires the privileges of the session's role, or the role pg_signal_backend, and for a superuser's session a
// superuser. A lock that this Locker holds is an error. After an error the session may have been ended if a holder is
// returned, or if the connection broke or ctx ended.
func (l *Locker) Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error) {
	w, err := want("terminate", name, opts)
	if err != nil {
		return sqllock.Holder{}, false, err
	}
	return l.engine.Terminate(ctx, name, session.Ender[key]{
		Look: func(ctx context.Context, op string) (sqllock.Holder, bool, error) {
			info, err := session.Ask(ctx, l.engine, op, name, func(ctx context.Context, c session.Conn[key]) (info Info, err error) {
				info.Holder, info.Held, err = c.Holder(ctx, w.Key)
				return info, err
			})
			return info.Holder, info.Held, err
		},
		Is: func(c session.Conn[key], id int64) bool { return c.(*conn).pid == strconv.FormatInt(id, 10) },
		End: func(ctx context.Context, c session.Conn[key], id int64) (bool, error) {
			return c.(*conn).end(ctx, w.Key, id)
		},
	})
}

var errPrepared = errors.New("a prepared transaction holds the lock, and has no session: COMMIT PREPARED or ROLLBACK PREPARED ends it")

// end ends the session id if it holds k.
func (c *conn) end(ctx context.Context, k key, id int64) (signalled bool, err error) {
	if id == 0 {
		return false, errPrepared
	}
	err = c.pc.QueryRow(ctx, terminateSQL, k.n, k.subid(), c.database, id).Scan(&signalled)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return signalled, withLimit(lacksRight(err, id))
}

func lacksRight(err error, id int64) error {
	const insufficientPrivilege = "42501"
	if connector.CodeOf(err) == insufficientPrivilege {
		return fmt.Errorf("ending session %d requires the privileges of its role, or the role pg_signal_backend, "+
			"and for a superuser's session a superuser: %w", id, err)
	}
	return err
}
