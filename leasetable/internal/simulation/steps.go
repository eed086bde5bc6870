package simulation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// AcquireFree implements store.Store.
func (s faulty) AcquireFree(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, "acquire free", req.Name, func(ctx context.Context) (store.Result, error) { return s.store.AcquireFree(ctx, req) })
}

// Acquire implements store.Store.
func (s faulty) Acquire(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, step("acquire", req), req.Name, func(ctx context.Context) (store.Result, error) { return s.store.Acquire(ctx, req) })
}

// step is the name of a step with a request of its own: patience has other faults.
func step(name string, req *store.Request) string {
	if req.Patient {
		return name + " patiently"
	}
	return name
}

// AcquireMany implements store.Store.
func (s faulty) AcquireMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	return call(ctx, s.process, "acquire many", namesOf(reqs), func(ctx context.Context) (map[string]store.Result, error) {
		return s.store.AcquireMany(ctx, reqs)
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

// Insert implements store.Store.
func (s faulty) Insert(ctx context.Context, req *store.Request) (int64, error) {
	return call(ctx, s.process, "insert", req.Name, func(ctx context.Context) (int64, error) { return s.store.Insert(ctx, req) })
}

// Takeover implements store.Store.
func (s faulty) Takeover(ctx context.Context, req *store.Request, dead []byte) (int64, error) {
	return call(ctx, s.process, "take over", req.Name, func(ctx context.Context) (int64, error) { return s.store.Takeover(ctx, req, dead) })
}

// Convert implements store.Store.
func (s faulty) Convert(ctx context.Context, name string, token int64, id, metadata []byte) (int64, error) {
	return call(ctx, s.process, "convert", name, func(ctx context.Context) (int64, error) { return s.store.Convert(ctx, name, token, id, metadata) })
}

// Release implements store.Store.
func (s faulty) Release(ctx context.Context, req *store.Request) (store.Result, error) {
	return call(ctx, s.process, step("release", req), req.Name, func(ctx context.Context) (store.Result, error) { return s.store.Release(ctx, req) })
}

// ReleaseMany implements store.Store.
func (s faulty) ReleaseMany(ctx context.Context, reqs []*store.Request) (map[string]store.Result, error) {
	return call(ctx, s.process, "release many", namesOf(reqs), func(ctx context.Context) (map[string]store.Result, error) {
		return s.store.ReleaseMany(ctx, reqs)
	})
}

// ReleaseByLease implements store.Store.
func (s faulty) ReleaseByLease(ctx context.Context, name string, id []byte, minHold time.Duration) (int64, error) {
	return call(ctx, s.process, "release by lease", name, func(ctx context.Context) (int64, error) {
		return s.store.ReleaseByLease(ctx, name, id, minHold)
	})
}

// Force implements store.Store.
func (s faulty) Force(ctx context.Context, name string, state store.State) (bool, error) {
	return call(ctx, s.process, "force", name, func(ctx context.Context) (bool, error) {
		s.forced(name)
		defer s.forced(name) // it may wait for the row
		return s.store.Force(ctx, name, state)
	})
}

// Move implements store.Store.
func (s faulty) Move(ctx context.Context, name string, token int64, from, to []byte) (bool, error) {
	return call(ctx, s.process, "move", name, func(ctx context.Context) (bool, error) { return s.store.Move(ctx, name, token, from, to) })
}

// Adopt implements store.Store.
func (s faulty) Adopt(ctx context.Context, from store.Held, id, metadata []byte) (int64, error) {
	return call(ctx, s.process, "adopt", from.Name, func(ctx context.Context) (int64, error) { return s.store.Adopt(ctx, from, id, metadata) })
}

type handoff struct {
	last      int64
	hasWaiter bool
}

// HandOff implements store.Store.
func (s faulty) HandOff(ctx context.Context, h store.Held, n int64, metadata []byte) (last int64, hasWaiter bool, err error) {
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
func (s faulty) SetMetadata(ctx context.Context, h store.Held, metadata []byte) (bool, error) {
	return call(ctx, s.process, "set metadata", h.Name, func(ctx context.Context) (bool, error) { return s.store.SetMetadata(ctx, h, metadata) })
}

// Pin implements store.Store.
func (s faulty) Pin(ctx context.Context, tx store.Transaction, h store.Held) (bool, error) {
	return call(ctx, s.process, "pin", h.Name, func(ctx context.Context) (bool, error) { return s.store.Pin(ctx, tx, h) })
}

// AcquirePermit implements store.Store.
func (s faulty) AcquirePermit(ctx context.Context, name string, state store.State, id []byte, limit int) (int64, error) {
	return call(ctx, s.process, "acquire permit", fmt.Sprint(name, state.Token), func(ctx context.Context) (int64, error) {
		return s.store.AcquirePermit(ctx, name, state, id, limit)
	})
}

// ReleasePermit implements store.Store.
func (s faulty) ReleasePermit(ctx context.Context, name string, id []byte, token int64) (int64, error) {
	return call(ctx, s.process, "release permit", fmt.Sprint(name, token), func(ctx context.Context) (int64, error) {
		return s.store.ReleasePermit(ctx, name, id, token)
	})
}

// ClearPermit implements store.Store.
func (s faulty) ClearPermit(ctx context.Context, name string, permit store.State) (bool, error) {
	return call(ctx, s.process, "clear permit", fmt.Sprint(name, permit.Token), func(ctx context.Context) (bool, error) {
		return s.store.ClearPermit(ctx, name, permit)
	})
}

// BumpToken implements store.Store.
func (s faulty) BumpToken(ctx context.Context, name string, state store.State) error {
	_, err := call(ctx, s.process, "bump token", fmt.Sprint(name, state.Token), func(ctx context.Context) (nothing, error) {
		return nothing{}, s.store.BumpToken(ctx, name, state)
	})
	return err
}

// ForcePermits implements store.Store.
func (s faulty) ForcePermits(ctx context.Context, name string, token int64) (bool, error) {
	return call(ctx, s.process, "force permits", name, func(ctx context.Context) (bool, error) {
		s.forced(name)
		defer s.forced(name) // it may wait for the row
		return s.store.ForcePermits(ctx, name, token)
	})
}
