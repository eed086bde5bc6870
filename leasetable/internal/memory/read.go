package memory

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// readSteps are the steps of store.ReadSteps.
type readSteps struct{ *Server }

// look runs f, which reads, with mu held.
func (s readSteps) look(ctx context.Context, f func(now int64)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return classify(err)
	}
	f(s.now())
	return nil
}

// Read implements store.Store.
func (s readSteps) Read(ctx context.Context, name string) (state store.State, err error) {
	err = s.look(ctx, func(now int64) {
		r, there := s.locks[name]
		switch {
		case !there:
		case r.limited:
			state = s.withPermits(now, name)
		default:
			state = s.state(now, r)
		}
	})
	return state, err
}

// ReadPermits implements store.Store.
func (s readSteps) ReadPermits(ctx context.Context, name string) (state store.State, err error) {
	err = s.look(ctx, func(now int64) {
		if _, there := s.locks[name]; there {
			state = s.withPermits(now, name)
		}
	})
	return state, err
}

// state is what read_state returns of a row.
func (s readSteps) state(now int64, r lockRow) store.State {
	state := store.State{Token: r.token, AcquiredUS: r.acquired, Metadata: slices.Clone(r.metadata)}
	state.Limit.Valid, state.Limit.Int64 = r.limited, r.limit
	if r.hasWaiter(now) {
		state.WaiterUS = r.waiterSince
	}
	expires := r.holdUntil
	if r.lease != "" {
		state.LeaseID = []byte(r.lease)
		if end := s.describe(&state, r.lease); end != 0 {
			expires = end
		}
	}
	setExpiry(&state, now, expires)
	return state
}

// describe adds what the row of a lease says. It returns when the lease expires, or 0 if the row is gone.
func (s readSteps) describe(state *store.State, lease string) (expires int64) {
	l, there := s.leases[lease]
	state.Gone = !there
	state.Owner, state.Host, state.PID, state.TTLUS, state.Renewals = l.owner, l.host, l.pid, l.ttl, l.renewals
	return l.expires
}

func setExpiry(state *store.State, now, expires int64) {
	if expires != 0 {
		state.ExpiresUS, state.RemainingUS = expires, expires-now
	}
}

// withPermits is what read_permits returns.
func (s readSteps) withPermits(now int64, name string) store.State {
	r := s.locks[name]
	state := s.state(now, r)
	state.WaiterUS, state.Metadata = 0, nil
	if r.exclusiveUntil != 0 {
		state.ExclusiveUS = r.exclusiveUntil - now
	}
	state.Permits = []store.State{}
	for _, k := range s.permitsOf(name) {
		p := s.permit(now, k)
		p.Permit = true
		state.Permits = append(state.Permits, p)
	}
	return state
}

// permit is what list_permits returns of a permit, without its name.
func (s readSteps) permit(now int64, k permitKey) store.State {
	p := s.permits[k]
	state := store.State{Token: k.token, LeaseID: []byte(p.lease), AcquiredUS: p.acquired}
	state.Limit.Valid, state.Limit.Int64 = true, p.limit
	setExpiry(&state, now, s.describe(&state, p.lease))
	return state
}

// List implements store.Store.
func (s readSteps) List(ctx context.Context, from, last string, limit int) (all []store.State, err error) {
	err = s.look(ctx, func(now int64) {
		for _, name := range s.names() {
			if name >= from && name <= last && len(all) < limit {
				state := s.state(now, s.locks[name])
				state.Name = []byte(name)
				all = append(all, state)
			}
		}
	})
	return all, err
}

// ListPermits implements store.Store.
func (s readSteps) ListPermits(ctx context.Context, from, last []byte) (all []store.State, err error) {
	err = s.look(ctx, func(now int64) {
		for _, k := range s.permitsBetween(string(from), string(last)) {
			state := s.permit(now, k)
			state.Name = []byte(k.name)
			all = append(all, state)
		}
	})
	return all, err
}

// StillHeld implements store.Store.
func (s readSteps) StillHeld(ctx context.Context, id []byte, names []string) (all []store.State, err error) {
	err = s.look(ctx, func(int64) {
		for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
			all = append(all, s.heldOf(id, name)...)
		}
	})
	return all, err
}

// heldOf returns how a lease holds a name.
func (s readSteps) heldOf(id []byte, name string) (all []store.State) {
	if r := s.locks[name]; r.lease == string(id) {
		all = append(all, store.State{Name: []byte(name), Token: r.token})
	}
	for _, k := range s.permitsBetween(name, name) {
		if s.permits[k].lease == string(id) {
			all = append(all, store.State{Name: []byte(name), Token: k.token, Permit: true})
		}
	}
	return all
}

// NamesOf implements store.Store.
func (s readSteps) NamesOf(ctx context.Context, id []byte, after string, limit int) (all []store.State, err error) {
	err = s.look(ctx, func(int64) {
		page := slices.DeleteFunc(s.names(), func(name string) bool { return name <= after })
		page = page[:min(limit, len(page))]
		for _, name := range page {
			all = append(all, s.heldOf(id, name)...)
		}
		if len(page) > 0 {
			all = append(all, store.State{Name: []byte(page[len(page)-1])})
		}
	})
	return all, err
}

// Diagnose implements store.Store.
func (s readSteps) Diagnose(_ context.Context, err error) error { return err }

// Accepts implements store.Store.
func (s readSteps) Accepts(context.Context) error { return nil }
