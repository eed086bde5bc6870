package memory

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// holdSteps are the steps of store.HoldSteps.
type holdSteps struct{ *Server }

// Move implements store.Store.
func (s holdSteps) Move(ctx context.Context, name string, token int64, from, to []byte) (there bool, err error) {
	onEither := func(r lockRow) bool { return r.mine(string(from), token) || r.mine(string(to), token) }
	return s.changeHeld(ctx, name, onEither, func(_ *Tx, r *lockRow) { r.lease = string(to) })
}

// changeHeld changes the row of a name if it meets a condition, and reports whether it did.
func (s holdSteps) changeHeld(ctx context.Context, name string, meets func(lockRow) bool, f func(t *Tx, r *lockRow)) (done bool, err error) {
	err = s.run(ctx, func(t *Tx) error {
		done, err = t.change(ctx, name, meets, func(r *lockRow) { f(t, r) })
		return err
	})
	return done, err
}

// Adopt implements store.Store.
func (s holdSteps) Adopt(ctx context.Context, from store.Held, id, metadata []byte) (token int64, err error) {
	next := from.Token + 1
	meets := func(r lockRow) bool { return r.mine(string(from.Lease), from.Token) || r.mine(string(id), next) }
	_, err = s.changeHeld(ctx, from.Name, meets, func(t *Tx, r *lockRow) {
		r.token, r.lease = next, string(id)
		r.acquired, r.released = t.now(), 0
		if metadata != nil {
			r.metadata = metadata
		}
		token = next
	})
	return token, err
}

// HandOff implements store.Store.
func (s holdSteps) HandOff(ctx context.Context, h store.Held, n int64, metadata []byte) (last int64, hasWaiter bool, err error) {
	_, err = s.changeHeld(ctx, h.Name, isHeld(h), func(t *Tx, r *lockRow) {
		r.token += n
		r.acquired, r.metadata = t.now(), metadata
		last, hasWaiter = r.token, r.hasWaiter(t.now())
	})
	return last, hasWaiter, err
}

func isHeld(h store.Held) func(lockRow) bool {
	return func(r lockRow) bool { return r.mine(string(h.Lease), h.Token) }
}

// SetMetadata implements store.Store.
func (s holdSteps) SetMetadata(ctx context.Context, h store.Held, metadata []byte) (held bool, err error) {
	return s.changeHeld(ctx, h.Name, isHeld(h), func(_ *Tx, r *lockRow) { r.metadata = metadata })
}

// Pin implements store.Store. The transaction is a Tx.
func (s holdSteps) Pin(ctx context.Context, tx store.Transaction, h store.Held) (found bool, err error) {
	query, one := guardName, 0
	if h.Permit {
		query = guardPermit
	}
	err = tx.Scan(ctx, query, []any{[]byte(h.Name), h.Lease, h.Token}, &one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, classify(err)
}
