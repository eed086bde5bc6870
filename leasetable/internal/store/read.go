package store

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// readSteps reads the states of names, and says why no answer came.
type readSteps struct{ *database }

func (s readSteps) Read(ctx context.Context, name string) (state State, err error) {
	all, err := s.states(ctx, readState, []byte(name))
	if err != nil || len(all) == 0 {
		return State{}, err
	}
	if all[0].Limit.Valid {
		return s.ReadPermits(ctx, name)
	}
	return all[0], nil
}

func (s readSteps) ReadPermits(ctx context.Context, name string) (state State, err error) {
	all, err := s.states(ctx, readPermits, []byte(name))
	if err != nil || len(all) == 0 || all[0].Permit {
		return State{}, err // permits without a lock row: somebody deleted the row
	}
	all[0].Permits = all[1:]
	return all[0], nil
}

func (s readSteps) List(ctx context.Context, from, last string, limit int) ([]State, error) {
	return s.states(ctx, list, []byte(from), []byte(last), limit)
}

func (s readSteps) ListPermits(ctx context.Context, from, last []byte) ([]State, error) {
	return s.states(ctx, listPermits, from, last)
}

func (s readSteps) StillHeld(ctx context.Context, id []byte, names []string) (all []State, err error) {
	reqs := make([]*Request, len(names))
	for i, name := range names {
		reqs[i] = &Request{Name: name, ID: id}
	}
	switch s.dialect {
	case schema.MySQL:
		f := s.fill(stillHeld, reqs)
		err = s.Work.SelectContext(ctx, &all, string(f.text), f.args...)
		return all, dberr.Classify(err)
	case schema.SQLite:
		return s.states(ctx, stillHeld, listOf("[]", reqs, appendPair), id)
	default:
		return s.states(ctx, stillHeld, listOf("{}", reqs, appendBytea), id)
	}
}

func (s readSteps) NamesOf(ctx context.Context, id []byte, after string, limit int) ([]State, error) {
	return s.states(ctx, namesOf, id, []byte(after), limit)
}

// errOldProgram refuses tables whose lowest program version is above that of this program; see docs/upgrading.md.
var errOldProgram = fmt.Errorf("%w: the tables take a later release of this program: upgrade it (`sqllock schema check` says to which version)", sqllock.ErrSchema)

func (s readSteps) Accepts(ctx context.Context) error {
	rows, err := s.query(ctx, accepts, schema.Version)
	if err != nil {
		return dberr.Classify(err)
	}
	defer rows.Close()
	if rows.Next() {
		return errOldProgram
	}
	return dberr.Classify(rows.Err())
}
