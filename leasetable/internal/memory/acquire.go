package memory

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// acquireSteps are the steps of store.AcquireSteps.
type acquireSteps struct{ *Server }

// classify adds to an error of a statement what a caller can act on.
func classify(err error) error { return dberr.Classify(err) }

// AcquireFree implements store.Store.
func (s acquireSteps) AcquireFree(ctx context.Context, req *store.Request) (store.Result, error) {
	return s.acquire(ctx, req, s.kind.OneWriter, s.kind.Refuses)
}

// Acquire implements store.Store.
func (s acquireSteps) Acquire(ctx context.Context, req *store.Request) (store.Result, error) {
	return s.acquire(ctx, req, s.kind.Upserts, false)
}

// acquire acquires a name that is free. It does not wait for a row whose committed version is not free.
func (s acquireSteps) acquire(ctx context.Context, req *store.Request, inserts, refuses bool) (got store.Result, err error) {
	err = s.run(ctx, func(t *Tx) error {
		r, there := s.locks[req.Name]
		if !there {
			if inserts {
				got.Token, err = t.insert(ctx, req.Name, req.ID, req.Metadata)
			}
			return err
		}
		if refuses && !t.lockable(nameKey(req.Name)) {
			return errConflict
		}
		if !r.free(t.now()) {
			return nil
		}
		_, err := t.change(ctx, req.Name, t.isFree, func(r *lockRow) {
			r.take(t.now(), req.ID, req.Metadata, req.Since)
			got.Token = r.token
		})
		return err
	})
	return got, err
}

func (t *Tx) isFree(r lockRow) bool { return r.free(t.now()) }

// insert acquires a name that has no row. It returns its token, or 0 if there was a row after all.
func (t *Tx) insert(ctx context.Context, name string, lease, metadata []byte) (int64, error) {
	if err := t.lockRow(ctx, nameKey(name)); err != nil {
		return 0, err
	}
	if _, there := t.server.locks[name]; there {
		return 0, nil
	}
	t.setName(name, lockRow{token: 1, lease: string(lease), acquired: t.now(), metadata: metadata})
	return 1, nil
}

// Insert implements store.Store.
func (s acquireSteps) Insert(ctx context.Context, req *store.Request) (token int64, err error) {
	if s.kind.Upserts {
		got, err := s.Acquire(ctx, req)
		return got.Token, err
	}
	err = s.run(ctx, func(t *Tx) error {
		token, err = t.insert(ctx, req.Name, req.ID, req.Metadata)
		return err
	})
	return token, err
}

// Takeover implements store.Store.
func (s acquireSteps) Takeover(ctx context.Context, req *store.Request, dead []byte) (token int64, err error) {
	heldByDead := func(r lockRow) bool { return r.lease == string(dead) && !s.hasLease(dead) }
	err = s.run(ctx, func(t *Tx) error {
		if s.kind.LeaseFirst && s.hasLease(dead) {
			return nil
		}
		_, err := t.change(ctx, req.Name, heldByDead, func(r *lockRow) {
			r.take(t.now(), req.ID, req.Metadata, req.Since)
			token = r.token
		})
		return err
	})
	return token, err
}

// Convert implements store.Store.
func (s acquireSteps) Convert(ctx context.Context, name string, token int64, id, metadata []byte) (next int64, err error) {
	asRead := func(r lockRow) bool { return r.token == token && r.lease == "" }
	err = s.run(ctx, func(t *Tx) error {
		_, err := t.change(ctx, name, asRead, func(r *lockRow) {
			r.take(t.now(), id, metadata, 0)
			r.limited, r.limit, r.exclusiveUntil = false, 0, 0
			next = r.token
		})
		return err
	})
	return next, err
}
