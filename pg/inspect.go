package pg

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Inspect reports which session holds the lock called name, in this process or another, if any does; of several that share
// it, one. Of the sessions of other roles Address and Since are not known, unless one may read their statistics
// (pg_read_all_stats). A Locker counts as one waiter, however many of its goroutines wait.
func (l *Locker) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (Info, error) {
	const op = "inspect"
	w, err := want(op, name, opts)
	if err != nil {
		return Info{}, err
	}
	return l.look(ctx, op, w)
}

// look asks who holds a lock.
func (l *Locker) look(ctx context.Context, op string, w session.Want[key]) (Info, error) {
	info, err := session.Ask(ctx, l.engine, op, w.Name, func(ctx context.Context, c session.Conn[key]) (Info, error) {
		return c.(*conn).look(ctx, w.Key)
	})
	info.Name = w.Name
	return info, err
}
