package simulation

import (
	"context"
	"time"
)

// waitSteps are the steps of store.WaitSteps, each with its fault.
type waitSteps struct{ *process }

// NoteWaiter implements store.Store.
func (s waitSteps) NoteWaiter(ctx context.Context, name string, since int64, within time.Duration) (bool, error) {
	return call(ctx, s.process, "note waiter", name, func(ctx context.Context) (bool, error) { return s.store.NoteWaiter(ctx, name, since, within) })
}

// RemoveWaiter implements store.Store.
func (s waitSteps) RemoveWaiter(ctx context.Context, name string, since int64) error {
	_, err := call(ctx, s.process, "remove waiter", name, func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.RemoveWaiter(ctx, name, since)
	})
	return err
}

// NoteExclusiveWaiter implements store.Store.
func (s waitSteps) NoteExclusiveWaiter(ctx context.Context, name string, us any) error {
	_, err := call(ctx, s.process, "note exclusive waiter", name, func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.NoteExclusiveWaiter(ctx, name, us)
	})
	return err
}
