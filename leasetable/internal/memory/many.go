package memory

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// batchSteps are the steps of store.BatchSteps.
type batchSteps struct{ *Server }

// AcquireMany implements store.Store.
func (s batchSteps) AcquireMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	got := make(map[string]store.Result)
	err := s.run(ctx, func(t *Tx) error {
		for _, req := range reqs {
			if _, there := s.locks[req.Name]; !there {
				if t.lockable(nameKey(req.Name)) {
					token, _ := t.insert(ctx, req.Name, req.ID, req.Metadata) // it does not wait
					got[req.Name] = store.Result{Token: token}
				}
				continue
			}
			t.changeUnlocked(req.Name, t.isFree, func(r *lockRow) {
				r.take(t.now(), req.ID, req.Metadata, 0)
				got[req.Name] = store.Result{Token: r.token}
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return got, nil
}

// ReleaseMany implements store.Store.
func (s batchSteps) ReleaseMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	freed := make(map[string]store.Result)
	err := s.run(ctx, func(t *Tx) error {
		for _, req := range reqs {
			mine := func(r lockRow) bool { return r.mine(string(req.ID), req.Token) }
			t.changeUnlocked(req.Name, mine, func(r *lockRow) { freed[req.Name] = t.release(req, r) })
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return freed, nil
}
