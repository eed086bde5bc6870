package store

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/schema"
)

// releaseSteps frees a name, for its holder or by force.
type releaseSteps struct{ *database }

func (s releaseSteps) Release(ctx context.Context, req *Request) (got Result, err error) {
	args := []any{req.key(), req.ID, req.Token, req.minHoldUS()}
	if s.dialect == schema.Postgres {
		args = append(args, s.commit(req))
	}
	freed, n, err := s.changeNumber(ctx, s.Work, release, args...)
	if freed {
		got = Result{Token: req.Token, HasWaiter: n > 0}
	}
	return got, err
}

func (s releaseSteps) ReleaseByLease(ctx context.Context, name string, id []byte, keep time.Duration) (freed int64, err error) {
	req := &Request{MinHold: keep}
	return s.change(ctx, s.Work, releaseByLease, row{[]byte(name)}, id, req.minHoldUS())
}

func (s releaseSteps) Force(ctx context.Context, name string, state State) (bool, error) {
	args := []any{row{[]byte(name)}, state.LeaseID, state.Token}
	switch s.dialect {
	case schema.MySQL:
		rows, err := s.change(ctx, s.Work, force, args...)
		return rows > 0, err
	case schema.SQLite:
		return s.inTransaction(ctx, step{force, args}, step{notifyLease, []any{state.LeaseID}})
	default:
		n, err := s.claim(ctx, force, args...)
		return n > 0, err
	}
}
