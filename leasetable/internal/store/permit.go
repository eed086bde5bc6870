package store

import (
	"context"

	"github.com/sqllock/sqllock/schema"
)

// permitSteps takes and frees shares and permits of a name.
type permitSteps struct{ *database }

func (s permitSteps) AcquirePermit(ctx context.Context, name string, state State, id []byte, limit int) (token int64, err error) {
	if s.dialect == schema.Postgres {
		return s.claim(ctx, acquirePermit, row{[]byte(name)}, state.Token, limit, state.LeaseID, id)
	}
	take := step{nextPermit, []any{limit, row{[]byte(name)}, state.Token, state.LeaseID}}
	if state.Token == 0 && state.AcquiredUS == 0 { // there is no row, not even one that somebody has inserted by hand
		take = step{firstPermit, []any{row{[]byte(name)}, limit}}
	}
	token = state.Token + 1
	taken, err := s.inTransaction(ctx, take, step{addPermit, []any{[]byte(name), token, id, limit}})
	if !taken {
		return 0, err
	}
	return token, nil
}

func (s permitSteps) ReleasePermit(ctx context.Context, name string, id []byte, token int64) (int64, error) {
	return s.change(ctx, s.Work, releasePermit, row{[]byte(name)}, id, row{token})
}

func (s permitSteps) ClearPermit(ctx context.Context, name string, permit State) (bool, error) {
	rows, err := s.change(ctx, s.Work, clearPermit, []byte(name), permit.LeaseID, permit.Token)
	return rows > 0, err
}

func (s permitSteps) BumpToken(ctx context.Context, name string, state State) error {
	_, err := s.change(ctx, s.Work, bumpToken, row{[]byte(name)}, state.Token, state.LeaseID)
	return err
}

func (s permitSteps) ForcePermits(ctx context.Context, name string, token int64) (forced bool, err error) {
	if s.dialect == schema.Postgres {
		n, err := s.claim(ctx, forcePermits, row{[]byte(name)}, token)
		return n > 0, err
	}
	key := []byte(name)
	return s.inTransaction(ctx, step{forcePermits, []any{row{key}, token}}, step{notifyPermits, []any{key}}, step{clearPermits, []any{key}})
}
