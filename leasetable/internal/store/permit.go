package store

import (
	"context"

	"github.com/sqllock/sqllock/schema"
)

// AcquirePermit implements Store.
func (s *Database) AcquirePermit(ctx context.Context, name string, state State, id []byte, limit int) (token int64, err error) {
	if s.dialect == schema.Postgres {
		return s.number(ctx, s.Work, acquirePermit, row{[]byte(name)}, state.Token, limit, state.LeaseID, id)
	}
	err = s.inTransaction(ctx, row{[]byte(name)}, func(run runner) (bool, error) {
		var rows int64
		var err error
		if state.Token == 0 {
			rows, err = run(firstPermit, []byte(name), limit)
		} else {
			rows, err = run(nextPermit, limit, []byte(name), state.Token, state.LeaseID)
		}
		if err != nil || rows == 0 {
			return false, err
		}
		token = state.Token + 1
		_, err = run(addPermit, []byte(name), token, id, limit)
		return true, err
	})
	if err != nil {
		return 0, err
	}
	return token, nil
}

// ReleasePermit implements Store.
func (s *Database) ReleasePermit(ctx context.Context, name string, id []byte, token int64) (int64, error) {
	return s.change(ctx, s.Work, releasePermit, row{[]byte(name)}, id, row{token})
}

// ClearPermit implements Store.
func (s *Database) ClearPermit(ctx context.Context, name string, permit State) (bool, error) {
	rows, err := s.change(ctx, s.Work, clearPermit, []byte(name), permit.LeaseID, permit.Token)
	return rows > 0, err
}

// BumpToken implements Store.
func (s *Database) BumpToken(ctx context.Context, name string, state State) error {
	_, err := s.change(ctx, s.Work, bumpToken, row{[]byte(name)}, state.Token, state.LeaseID)
	return err
}

// ForcePermits implements Store.
func (s *Database) ForcePermits(ctx context.Context, name string, token int64) (forced bool, err error) {
	if s.dialect == schema.Postgres {
		n, err := s.number(ctx, s.Work, forcePermits, []byte(name), token)
		return n > 0, err
	}
	err = s.inTransaction(ctx, nil, func(run runner) (bool, error) {
		rows, err := run(forcePermits, []byte(name), token)
		if err != nil || rows == 0 {
			return false, err
		}
		forced = true
		if _, err := run(notifyPermits, []byte(name)); err != nil {
			return false, err
		}
		_, err = run(clearPermits, []byte(name))
		return true, err
	})
	return forced && err == nil, err
}
