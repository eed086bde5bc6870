package simulation

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// releaseSteps are the steps of store.ReleaseSteps, each with its fault.
type releaseSteps struct{ *process }

// Release implements store.Store.
func (s releaseSteps) Release(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, step("release", req), req.Name, func(ctx context.Context) (store.Result, error) { return s.store.Release(ctx, req) })
}

// ReleaseByLease implements store.Store.
func (s releaseSteps) ReleaseByLease(ctx context.Context, name string, id []byte, minHold time.Duration) (int64, error) {
	return call(ctx, s.process, "release by lease", name, func(ctx context.Context) (int64, error) {
		return s.store.ReleaseByLease(ctx, name, id, minHold)
	})
}

// Force implements store.Store.
func (s releaseSteps) Force(ctx context.Context, name string, state store.State) (bool, error) {
	return call(ctx, s.process, "force", name, func(ctx context.Context) (bool, error) {
		s.forced(name)
		defer s.forced(name) // it may wait for the row
		return s.store.Force(ctx, name, state)
	})
}
