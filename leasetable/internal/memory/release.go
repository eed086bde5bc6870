package memory

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// releaseSteps are the steps of store.ReleaseSteps.
type releaseSteps struct{ *Server }

// Release implements store.Store.
func (s releaseSteps) Release(ctx context.Context, req *store.Request) (got store.Result, err error) {
	mine := func(r lockRow) bool { return r.mine(string(req.ID), req.Token) }
	err = s.run(ctx, func(t *Tx) error {
		_, err := t.change(ctx, req.Name, mine, func(r *lockRow) { got = t.release(req, r) })
		return err
	})
	return got, err
}

// release frees the name of a row that meets the condition of req.
func (t *Tx) release(req *store.Request, r *lockRow) store.Result {
	now := t.now()
	r.release(now, req.MinHold.Microseconds())
	t.async = t.server.kind.Async && req.MinHold == 0
	return store.Result{Token: req.Token, HasWaiter: r.hasWaiter(now)}
}

// ReleaseByLease implements store.Store.
func (s releaseSteps) ReleaseByLease(ctx context.Context, name string, id []byte, minHold time.Duration) (freed int64, err error) {
	heldBy := func(r lockRow) bool { return r.lease == string(id) }
	err = s.run(ctx, func(t *Tx) error {
		_, err := t.change(ctx, name, heldBy, func(r *lockRow) {
			r.release(t.now(), minHold.Microseconds())
			freed = 1
		})
		return err
	})
	return freed, err
}

// Force implements store.Store.
func (s releaseSteps) Force(ctx context.Context, name string, state store.State) (forced bool, err error) {
	asRead := func(r lockRow) bool { return r.lease == string(state.LeaseID) && r.token == state.Token }
	err = s.run(ctx, func(t *Tx) error {
		forced, err = t.change(ctx, name, asRead, func(r *lockRow) {
			now := t.now()
			r.release(now, 0)
			r.token++
		})
		if forced {
			noteChange(t, string(state.LeaseID))
		}
		return err
	})
	return forced, err
}

// noteChange counts up the changes of a lease, if it has a row.
func noteChange(t *Tx, lease string) {
	if l, there := t.server.leases[lease]; there {
		l.changes++
		set(t, t.server.leases, lease, l)
	}
}
