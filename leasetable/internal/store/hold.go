package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// holdSteps changes what a lease holds, or makes sure that it holds it.
type holdSteps struct{ *database }

// Held is a name that a lease holds, alone or by a permit.
type Held struct {
	Name   string
	Lease  []byte // the id
	Token  int64
	Permit bool
}

func (s holdSteps) Move(ctx context.Context, name string, token int64, from, to []byte) (there bool, err error) {
	n, err := s.claim(ctx, move, to, row{[]byte(name)}, token, from)
	return n != 0, err
}

func (s holdSteps) Adopt(ctx context.Context, from Held, id, metadata []byte) (token int64, err error) {
	var attach any // null keeps the metadata
	if metadata != nil {
		attach = metadata
	}
	return s.claim(ctx, adopt, id, from.Token+1, attach, row{[]byte(from.Name)}, from.Lease, from.Token)
}

func (s holdSteps) HandOff(ctx context.Context, h Held, n int64, metadata []byte) (last int64, hasWaiter bool, err error) {
	got, err := s.claim(ctx, handOff, metadata, row{[]byte(h.Name)}, h.Lease, h.Token, n)
	return got / 2, got%2 == 1, err
}

func (s holdSteps) SetMetadata(ctx context.Context, h Held, metadata []byte) (held bool, err error) {
	token, err := s.claim(ctx, setMetadata, metadata, row{[]byte(h.Name)}, h.Lease, h.Token)
	return token != 0, err
}

// Transaction runs statements in a transaction of the caller.
type Transaction struct {
	Scan func(ctx context.Context, query string, args []any, to any) error
	Exec func(ctx context.Context, query string, args []any) (sql.Result, error) // nil for a pgx.Tx
}

func (s holdSteps) Pin(ctx context.Context, tx Transaction, h Held) (found bool, err error) {
	if s.OnGalera() {
		switch {
		case h.Permit:
			return false, fmt.Errorf("%w: a guard of a share or permit on a Galera node, where a lock on its row keeps nobody out", sqllock.ErrUnsupported)
		case tx.Exec != nil:
			return s.pinGalera(ctx, tx, h)
		}
	}
	var kind int
	st := guard
	if h.Permit {
		st = guardPermit
	}
	text, args := s.bind(st, []any{[]byte(h.Name), h.Lease, h.Token})
	err = tx.Scan(ctx, text, args, &kind)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err == nil && kind == pinnedReadOnly {
		err = dberr.ReadOnly("the transaction is on a replica, or a proxy has sent the guard to one")
	}
	return err == nil, dberr.Classify(err)
}

// pinnedReadOnly is what guard.sql and guard_permit.sql return on MySQL and MariaDB from a server that is read-only.
const pinnedReadOnly = 2

// pinGalera does what pin does on a Galera node. There a takeover on another node does not wait for a row lock, so pinGalera
// writes the row (I13): see Galera in chapter 7 of docs/design.md.
func (s holdSteps) pinGalera(ctx context.Context, tx Transaction, h Held) (found bool, err error) {
	for _, by := range []int64{1, -1} {
		text, args := s.bind(guardGalera, []any{by, []byte(h.Name), h.Lease, h.Token + max(-by, 0)})
		result, err := tx.Exec(ctx, text, args)
		if err != nil {
			return false, dberr.Classify(err)
		}
		if rows, err := result.RowsAffected(); err != nil || rows == 0 {
			return false, dberr.Classify(err)
		}
	}
	return true, nil
}
