package simulation

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// OpenTurn implements store.Store.
func (s waitSteps) OpenTurn(ctx context.Context) (store.Turn, error) {
	t, err := call(ctx, s.process, "open turn", "", func(ctx context.Context) (store.Turn, error) { return s.store.OpenTurn(ctx) })
	if err != nil {
		return nil, err
	}
	return faultyTurn{s.process, t}, nil
}

// faultyTurn is a turn whose calls have faults.
type faultyTurn struct {
	p *process
	store.Turn
}

// Try implements store.Turn.
func (t faultyTurn) Try(ctx context.Context, name string) (bool, error) {
	return call(ctx, t.p, "try turn", name, func(ctx context.Context) (bool, error) { return t.Turn.Try(ctx, name) })
}

// Wait implements store.Turn.
func (t faultyTurn) Wait(ctx context.Context, name string, d time.Duration) (bool, error) {
	return call(ctx, t.p, "wait for turn", name, func(ctx context.Context) (bool, error) { return t.Turn.Wait(ctx, name, d) })
}

// Leave implements store.Turn.
func (t faultyTurn) Leave(ctx context.Context) error {
	_, err := call(ctx, t.p, "leave turn", "", func(ctx context.Context) (nothing, error) { return nothing{}, t.Turn.Leave(ctx) })
	return err
}
