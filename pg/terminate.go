package pg

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// pause lies between two looks at a lock whose holder was ended.
const pause = 5 * time.Millisecond

var errPrepared = errors.New("a prepared transaction holds the lock, and has no session: COMMIT PREPARED or ROLLBACK PREPARED ends it")

var errOwn = errors.New("this Locker holds the lock itself; Release it, or Close the Locker")

// Terminate ends the session that holds the lock called name (pg_terminate_backend) and returns
// who that was, and whether it ended any: not when nobody held the lock, or no longer when it
// came to it.
// It returns when that session no longer holds the lock; every other lock of the session is lost,
// too. Of several sessions that share the lock it ends one.
//
// It takes the privileges of the session's role, or the role pg_signal_backend, and for a
// superuser's session a superuser. A lock that this Locker holds is an error. After an error the
// session may have been ended if a holder is returned, or if the connection broke or ctx ended.
func (l *Locker) Terminate(ctx context.Context, name string, opts ...sqllock.Option) (holder sqllock.Holder, ended bool, err error) {
	const op = "terminate"
	w, err := want(op, name, opts)
	if err != nil {
		return sqllock.Holder{}, false, err
	}
	holder, held, err := l.look(ctx, op, w)
	if err != nil || !held {
		return sqllock.Holder{}, false, err
	}
	if holder.Session == 0 {
		return sqllock.Holder{}, false, &sqllock.OpError{Op: op, Name: name, Err: errPrepared}
	}
	if l.engine.Owns(func(c session.Conn[key]) bool { return c.(*conn).pid == strconv.FormatInt(holder.Session, 10) }) {
		return sqllock.Holder{}, false, &sqllock.OpError{Op: op, Name: name, Err: errOwn}
	}
	ended, err = l.end(ctx, op, w, holder.Session)
	if !ended {
		return sqllock.Holder{}, false, err
	}
	if err == nil {
		err = l.gone(ctx, op, w, holder.Session)
	}
	return holder, true, err
}

// end ends the session if it holds the lock. It may run twice, and then finds nobody.
func (l *Locker) end(ctx context.Context, op string, w session.Want[key], id int64) (ended bool, err error) {
	var done atomic.Bool // the server may have obeyed a statement that was cut off
	_, err = session.Ask(ctx, l.engine, op, w.Name, func(ctx context.Context, c session.Conn[key]) (signalled bool, err error) {
		on := c.(*conn)
		err = on.pc.QueryRow(ctx, terminateSQL, w.Key.n, w.Key.subid(), on.database, id).Scan(&signalled)
		if errors.Is(err, pgx.ErrNoRows) {
			err = nil
		}
		if signalled {
			done.Store(true)
		}
		return signalled, withLimit(lacksRight(err, id))
	})
	return done.Load(), err
}

func lacksRight(err error, id int64) error {
	const insufficientPrivilege = "42501"
	var answer *pgconn.PgError
	if errors.As(err, &answer) && answer.Code == insufficientPrivilege {
		return fmt.Errorf("ending session %d takes the privileges of its role, or the role pg_signal_backend, "+
			"and for a superuser's session a superuser: %w", id, err)
	}
	return err
}

// gone waits until the session no longer holds the lock: the server ends it at its leisure.
func (l *Locker) gone(ctx context.Context, op string, w session.Want[key], id int64) error {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		now, held, err := l.look(ctx, op, w)
		if err != nil {
			return err
		}
		if !held || now.Session != id {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return &sqllock.OpError{Op: op, Name: w.Name, Err: context.Cause(ctx)}
		}
	}
}
