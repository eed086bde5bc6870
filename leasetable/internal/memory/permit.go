package memory

import (
	"context"

	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// permitSteps are the steps of store.PermitSteps.
type permitSteps struct{ *Server }

// AcquirePermit implements store.Store.
func (s permitSteps) AcquirePermit(ctx context.Context, name string, state store.State, id []byte, limit int) (token int64, err error) {
	err = s.run(ctx, func(t *Tx) error {
		lives := s.hasLease(state.LeaseID)
		if _, there := s.locks[name]; s.kind.Upserts && state.Token != 0 && (!there || s.kind.LeaseFirst && lives) {
			return nil // next_permit inserts nothing
		}
		if err := t.lockRow(ctx, nameKey(name)); err != nil {
			return err
		}
		r, there := s.locks[name]
		if there && (r.token != state.Token || r.lease != string(state.LeaseID) || lives) {
			return nil
		}
		if !there {
			r.token = state.Token
		}
		now := t.now()
		r.token++
		r.lease, r.limited, r.limit = "", true, int64(limit)
		r.acquired, r.released, r.holdUntil = now, 0, 0
		t.setName(name, r)
		set(t, s.permits, permitKey{name, r.token}, permitRow{string(id), int64(limit), now})
		s.tellPermit(permitKey{name, r.token})
		token = r.token
		return nil
	})
	return token, err
}

// ReleasePermit implements store.Store.
func (s permitSteps) ReleasePermit(ctx context.Context, name string, id []byte, token int64) (freed int64, err error) {
	k := permitKey{name, token}
	err = s.run(ctx, func(t *Tx) error {
		if _, there := s.permits[k]; !there || !s.kind.LocksFirst && !s.hasPermit(k, id) {
			return nil
		}
		if err := t.lockRow(ctx, permitRowKey(k)); err != nil {
			return err
		}
		freed = deletePermit(t, k, id)
		return nil
	})
	return freed, err
}

func deletePermit(t *Tx, k permitKey, lease []byte) int64 {
	if !t.server.hasPermit(k, lease) {
		return 0
	}
	remove(t, t.server.permits, k)
	return 1
}

// ClearPermit implements store.Store.
func (s permitSteps) ClearPermit(ctx context.Context, name string, permit store.State) (cleared bool, err error) {
	k := permitKey{name, permit.Token}
	err = s.run(ctx, func(t *Tx) error {
		if s.hasPermit(k, permit.LeaseID) && !s.hasLease(permit.LeaseID) && t.lockable(permitRowKey(k)) {
			cleared = deletePermit(t, k, permit.LeaseID) > 0
		}
		return nil
	})
	return cleared, err
}

// BumpToken implements store.Store.
func (s permitSteps) BumpToken(ctx context.Context, name string, state store.State) error {
	return s.run(ctx, func(t *Tx) error {
		if err := t.lockRow(ctx, nameKey(name)); err != nil {
			return err
		}
		r, there := s.locks[name]
		switch {
		case !there:
			t.setName(name, lockRow{token: state.Token + 1, acquired: t.now()})
		case r.token == state.Token && r.lease == string(state.LeaseID):
			r.token++
			t.setName(name, r)
		}
		return nil
	})
}

// ForcePermits implements store.Store.
func (s permitSteps) ForcePermits(ctx context.Context, name string, token int64) (forced bool, err error) {
	asRead := func(r lockRow) bool { return r.token == token && r.lease == "" }
	err = s.run(ctx, func(t *Tx) error {
		if r, there := s.locks[name]; !there || !s.kind.LocksFirst && !asRead(r) {
			return nil
		}
		if err := t.lockRow(ctx, nameKey(name)); err != nil {
			return err
		}
		if !asRead(s.locks[name]) {
			return nil
		}
		for _, k := range s.permitsOf(name) { // nobody adds one: that changes the row of the name
			if err := t.lockRow(ctx, permitRowKey(k)); err != nil {
				return err
			}
		}
		_, err := t.changeLocked(name, nil, asRead, func(r *lockRow) {
			r.token++
			r.released = t.now()
		})
		told := make(map[string]bool)
		for _, k := range s.permitsOf(name) {
			if lease := s.permits[k].lease; !told[lease] {
				told[lease] = true
				noteChange(t, lease)
			}
			remove(t, s.permits, k)
		}
		forced = err == nil
		return err
	})
	return forced, err
}
