package simulation

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// readSteps are the steps of store.ReadSteps, each with its fault.
type readSteps struct{ *process }

// Read implements store.Store.
func (s readSteps) Read(ctx context.Context, name string) (store.State, error) {
	return call(ctx, s.process, "read", name, func(ctx context.Context) (store.State, error) { return s.store.Read(ctx, name) })
}

// ReadPermits implements store.Store.
func (s readSteps) ReadPermits(ctx context.Context, name string) (store.State, error) {
	return call(ctx, s.process, "read permits", name, func(ctx context.Context) (store.State, error) { return s.store.ReadPermits(ctx, name) })
}

// List implements store.Store.
func (s readSteps) List(ctx context.Context, from, last string, limit int) ([]store.State, error) {
	return call(ctx, s.process, "list", from, func(ctx context.Context) ([]store.State, error) { return s.store.List(ctx, from, last, limit) })
}

// ListPermits implements store.Store.
func (s readSteps) ListPermits(ctx context.Context, from, last []byte) ([]store.State, error) {
	return call(ctx, s.process, "list permits", string(from), func(ctx context.Context) ([]store.State, error) { return s.store.ListPermits(ctx, from, last) })
}

// StillHeld implements store.Store.
func (s readSteps) StillHeld(ctx context.Context, id []byte, names []string) ([]store.State, error) {
	return call(ctx, s.process, "still held", s.id(id), func(ctx context.Context) ([]store.State, error) { return s.store.StillHeld(ctx, id, names) })
}

// NamesOf implements store.Store. Its pages are short.
func (s readSteps) NamesOf(ctx context.Context, id []byte, after string, _ int) ([]store.State, error) {
	return call(ctx, s.process, "names of", s.id(id), func(ctx context.Context) ([]store.State, error) { return s.store.NamesOf(ctx, id, after, 2) })
}

// Accepts implements store.Store.
func (s readSteps) Accepts(ctx context.Context) error {
	_, err := call(ctx, s.process, "accepts", "", func(ctx context.Context) (nothing, error) { return nothing{}, s.store.Accepts(ctx) })
	return err
}

// Diagnose implements store.Store.
func (s readSteps) Diagnose(_ context.Context, err error) error { return err }
