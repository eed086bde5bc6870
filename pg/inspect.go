package pg

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// Inspect returns the sessions that hold the lock called name, in this process or another, if there are any. For
// sessions of other roles Address and Since are not known, unless the role may read their statistics
// (pg_read_all_stats). A Locker counts as one waiter, however many of its goroutines wait.
func (l *Locker) Inspect(ctx context.Context, name string, opts ...sqllock.Option) (Info, error) {
	const op = "inspect"
	w, err := want(op, name, opts)
	if err != nil {
		return Info{}, err
	}
	return session.Ask(ctx, l.engine, op, name, func(ctx context.Context, c session.Conn[key]) (Info, error) {
		infos, err := c.(*conn).list(ctx)
		for _, info := range infos {
			if info.Key == w.Key.n && info.Pair == w.Key.pair {
				info.Name = name
				return info, err
			}
		}
		return Info{Name: name, Key: w.Key.n, Pair: w.Key.pair}, err
	})
}
