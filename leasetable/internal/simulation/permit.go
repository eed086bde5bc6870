package simulation

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// permitSteps are the steps of store.PermitSteps, each with its fault.
type permitSteps struct{ *process }

// AcquirePermit implements store.Store.
func (s permitSteps) AcquirePermit(ctx context.Context, name string, state store.State, id []byte, limit int) (int64, error) {
	return call(ctx, s.process, "acquire permit", fmt.Sprint(name, state.Token), func(ctx context.Context) (int64, error) {
		return s.store.AcquirePermit(ctx, name, state, id, limit)
	})
}

// ReleasePermit implements store.Store.
func (s permitSteps) ReleasePermit(ctx context.Context, name string, id []byte, token int64) (int64, error) {
	return call(ctx, s.process, "release permit", fmt.Sprint(name, token), func(ctx context.Context) (int64, error) {
		return s.store.ReleasePermit(ctx, name, id, token)
	})
}

// ClearPermit implements store.Store.
func (s permitSteps) ClearPermit(ctx context.Context, name string, permit store.State) (bool, error) {
	return call(ctx, s.process, "clear permit", fmt.Sprint(name, permit.Token), func(ctx context.Context) (bool, error) {
		return s.store.ClearPermit(ctx, name, permit)
	})
}

// BumpToken implements store.Store.
func (s permitSteps) BumpToken(ctx context.Context, name string, state store.State) error {
	_, err := call(ctx, s.process, "bump token", fmt.Sprint(name, state.Token), func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.BumpToken(ctx, name, state)
	})
	return err
}

// ForcePermits implements store.Store.
func (s permitSteps) ForcePermits(ctx context.Context, name string, token int64) (bool, error) {
	return call(ctx, s.process, "force permits", name, func(ctx context.Context) (bool, error) {
		s.forced(name)
		defer s.forced(name) // it may wait for the row
		return s.store.ForcePermits(ctx, name, token)
	})
}
