package simulation

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// acquireSteps are the steps of store.AcquireSteps, each with its fault.
type acquireSteps struct{ *process }

// AcquireFree implements store.Store.
func (s acquireSteps) AcquireFree(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, "acquire free", req.Name, func(ctx context.Context) (store.Result, error) { return s.store.AcquireFree(ctx, req) })
}

// Acquire implements store.Store.
func (s acquireSteps) Acquire(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, step("acquire", req), req.Name, func(ctx context.Context) (store.Result, error) { return s.store.Acquire(ctx, req) })
}

// step is the name of a step with a request of its own: patience has other faults.
func step(name string, req *store.Request) string {
	if req.Patient {
		return name + " patiently"
	}
	return name
}

// Insert implements store.Store.
func (s acquireSteps) Insert(ctx context.Context, req *store.Request) (int64, error) {
	return call(ctx, s.process, "insert", req.Name, func(ctx context.Context) (int64, error) { return s.store.Insert(ctx, req) })
}

// Takeover implements store.Store.
func (s acquireSteps) Takeover(ctx context.Context, req *store.Request, dead []byte) (int64, error) {
	return call(ctx, s.process, "take over", req.Name, func(ctx context.Context) (int64, error) { return s.store.Takeover(ctx, req, dead) })
}

// Convert implements store.Store.
func (s acquireSteps) Convert(ctx context.Context, name string, token int64, id, metadata []byte) (int64, error) {
	return call(ctx, s.process, "convert", name, func(ctx context.Context) (int64, error) { return s.store.Convert(ctx, name, token, id, metadata) })
}
