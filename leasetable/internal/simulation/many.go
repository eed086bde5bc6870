package simulation

import (
	"context"
	"strings"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// batchSteps are the steps of store.BatchSteps, each with its fault.
type batchSteps struct{ *process }

// AcquireMany implements store.Store.
func (s batchSteps) AcquireMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	return call(ctx, s.process, "acquire many", namesOf(reqs), func(ctx context.Context) (map[string]store.Result, error) {
		return s.store.AcquireMany(ctx, reqs)
	})
}

// ReleaseMany implements store.Store.
func (s batchSteps) ReleaseMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	return call(ctx, s.process, "release many", namesOf(reqs), func(ctx context.Context) (map[string]store.Result, error) {
		return s.store.ReleaseMany(ctx, reqs)
	})
}

// namesOf is what a statement for many is about.
func namesOf(reqs []*store.Request) string {
	all := make([]string, len(reqs))
	for i, req := range reqs {
		all[i] = req.Name
	}
	return strings.Join(all, " ")
}
