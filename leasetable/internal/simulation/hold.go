package simulation

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// holdSteps are the steps of store.HoldSteps, each with its fault.
type holdSteps struct{ *process }

// Move implements store.Store.
func (s holdSteps) Move(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
	return call(ctx, s.process, "move", name, func(ctx context.Context) (bool, error) { return s.store.Move(ctx, name, token, from, to) })
}

// Adopt implements store.Store.
func (s holdSteps) Adopt(ctx context.Context, from store.Held, id, metadata []byte) (int64, error) {
	return call(ctx, s.process, "adopt", from.Name, func(ctx context.Context) (int64, error) { return s.store.Adopt(ctx, from, id, metadata) })
}

type handoff struct {
	last      int64
	hasWaiter bool
}

// HandOff implements store.Store.
func (s holdSteps) HandOff(ctx context.Context, h store.Held, n int64, metadata []byte) (last int64, hasWaiter bool, err error) {
	o, err := call(ctx, s.process, "hand off", h.Name, func(ctx context.Context) (o handoff, err error) {
		o.last, o.hasWaiter, err = s.store.HandOff(ctx, h, n, metadata)
		return o, err
	})
	if err != nil {
		return 0, false, err
	}
	return o.last, o.hasWaiter, nil
}

// SetMetadata implements store.Store.
func (s holdSteps) SetMetadata(ctx context.Context, h store.Held, metadata []byte) (bool, error) {
	return call(ctx, s.process, "set metadata", h.Name, func(ctx context.Context) (bool, error) { return s.store.SetMetadata(ctx, h, metadata) })
}

// Pin implements store.Store.
func (s holdSteps) Pin(ctx context.Context, tx store.Transaction, h store.Held) (bool, error) {
	return call(ctx, s.process, "pin", h.Name, func(ctx context.Context) (bool, error) { return s.store.Pin(ctx, tx, h) })
}
