package pg

import (
	"context"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/session"
)

// look asks who holds a lock.
func (l *Locker) look(ctx context.Context, op string, w session.Want[key]) (sqllock.Holder, bool, error) {
	type answer struct {
		holder sqllock.Holder
		held   bool
	}
	a, err := session.Ask(ctx, l.engine, op, w.Name, func(ctx context.Context, c session.Conn[key]) (a answer, err error) {
		a.holder, a.held, err = c.Holder(ctx, w.Key)
		return a, err
	})
	return a.holder, a.held, err
}
