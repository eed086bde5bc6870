package store

import (
	"context"

	"github.com/sqllock/sqllock/schema"
)

// acquireSteps acquires a name that nobody holds.
type acquireSteps struct{ *database }

func (s acquireSteps) AcquireFree(ctx context.Context, req *Request) (got Result, err error) {
	st := acquire
	// MySQL truncates the upper bound of the range in acquire_free.sql to the length of a name, and looks up a name of
	// the maximum length as `name = ?`.
	if s.dialect == schema.MySQL && len(req.Name) < MaxName {
		st = acquireFree
	}
	got.Token, err = s.claim(ctx, st, []byte(req.Name), req.ID, req.Since, req.Metadata)
	return got, err
}

func (s acquireSteps) Acquire(ctx context.Context, req *Request) (got Result, err error) {
	got.Token, err = s.claim(ctx, acquire, req.key(), req.ID, req.Since, req.Metadata)
	return got, err
}

// Insert implements Store. On MySQL and SQLite the acquire statements insert, too.
func (s acquireSteps) Insert(ctx context.Context, req *Request) (token int64, err error) {
	if s.dialect == schema.Postgres {
		return s.claim(ctx, insert, row{[]byte(req.Name)}, req.ID, req.Metadata)
	}
	got, err := s.Acquire(ctx, req.patient())
	return got.Token, err
}

func (s acquireSteps) Takeover(ctx context.Context, req *Request, dead []byte) (token int64, err error) {
	return s.claim(ctx, takeover, req.ID, row{[]byte(req.Name)}, dead, req.Since, req.Metadata)
}

func (s acquireSteps) Convert(ctx context.Context, name string, token int64, id, metadata []byte) (next int64, err error) {
	return s.claim(ctx, convert, id, metadata, row{[]byte(name)}, token)
}
