package leasetable

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// lockState is a row of a statement that reads or lists names and permits: the state of a name, or of one of its
// permits.
type lockState struct {
	Name        []byte `db:"-"` // of statements for several names; states scans it, like the other fields with "-"
	Token       int64  `db:"token"`
	LeaseID     []byte `db:"-"`    // nil: no lease holds the name
	Gone        bool   `db:"gone"` // the lease row is gone: the lease is over for good
	Owner       string `db:"owner"`
	Host        string `db:"host"`
	PID         int    `db:"pid"`
	AcquiredUS  int64  `db:"acquired_us"`
	ExpiresUS   int64  `db:"expires_us"`   // the end of the lease or, without a lease, of the minimum hold
	RemainingUS int64  `db:"remaining_us"` // time until then
	TTLUS       int64  `db:"ttl_us"`
	Renewals    int64  `db:"renewals"`
	WaiterUS    int64  `db:"waiter_us"` // of read_state and list: since when another process waits for the name; 0: no waiter is known
	Metadata    []byte `db:"-"`

	// Permits is set for a name with shares or permits, also when the last of them was released, and for each share or
	// permit. It is the limit that the latest acquisition of the name, or this holder, requested; 0: no limit.
	Permits     sql.NullInt64 `db:"permits"`
	ExclusiveUS int64         `db:"exclusive_us"` // for how long no share or permit is granted, because a waiter wants the whole name
	Permit      bool          `db:"permit"`       // the row is a share or permit
	permits     []lockState   // the rows of the shares and permits, by token; set by readPermits and List
}

// raw is bytes that a statement returns as they are or, on PostgreSQL, as text in hex: the form of bytes in a text
// protocol depends on bytea_output there.
type raw []byte

// Scan implements sql.Scanner.
func (r *raw) Scan(from any) (err error) {
	switch from := from.(type) {
	case nil:
		*r = nil
	case []byte:
		*r = slices.Clone(from)
	case string:
		*r, err = hex.DecodeString(from)
	default:
		err = fmt.Errorf("leasetable: the driver gives %T for bytes", from)
	}
	return err
}

// read reads the state of a name, with its shares or permits. A name that was never acquired reads as free.
func (s *store) read(ctx context.Context, name string) (state lockState, err error) {
	all, err := s.states(ctx, readState, []byte(name))
	if err != nil || len(all) == 0 {
		return lockState{}, err
	}
	if all[0].Permits.Valid {
		return s.readPermits(ctx, name)
	}
	return all[0], nil
}

// states runs a statement that returns names, shares or permits.
func (s *store) states(ctx context.Context, st statement, args ...any) (all []lockState, err error) {
	rows, err := s.query(ctx, s.work, st, args...)
	if err != nil {
		return nil, classify(err)
	}
	defer rows.Close()
	for rows.Next() {
		var row struct {
			lockState
			Name     raw `db:"name"`
			LeaseID  raw `db:"lease_id"`
			Metadata raw `db:"metadata"`
		}
		if err := rows.StructScan(&row); err != nil {
			return nil, classify(err)
		}
		row.lockState.Name, row.lockState.LeaseID, row.lockState.Metadata = row.Name, row.LeaseID, row.Metadata
		all = append(all, row.lockState)
	}
	return all, classify(rows.Err())
}

// list returns the states of up to limit names from from to last, in the order of their bytes. The permits of names are
// not among them: see listPermits.
func (s *store) list(ctx context.Context, from, last string, limit int) ([]lockState, error) {
	return s.states(ctx, list, []byte(from), []byte(last), limit)
}

// listPermits returns the permits of the names from from to last, in the order of names and tokens.
func (s *store) listPermits(ctx context.Context, from, last []byte) ([]lockState, error) {
	return s.states(ctx, listPermits, from, last)
}

// namesOf returns the names and permits that a lease holds: their names, tokens, and which of them are permits.
func (s *store) namesOf(ctx context.Context, id []byte) ([]lockState, error) {
	return s.states(ctx, namesOf, id)
}

// taken reports whether live leases hold the name, or the name is in its minimum hold.
func (s lockState) taken() bool { return s.live() || len(s.together()) > 0 }

func (s lockState) holder() sqllock.Holder {
	if together := s.together(); len(together) > 0 {
		return together[0].holder()
	}
	return sqllock.Holder{
		Owner: s.Owner,
		Host:  s.Host,
		PID:   s.PID,
		Token: s.Token,
		Since: time.UnixMicro(s.AcquiredUS),
		Until: time.UnixMicro(s.ExpiresUS),
		TTL:   time.Duration(s.TTLUS) * time.Microsecond,

		Metadata: string(s.Metadata),
	}
}

// live reports whether the lease of the row is not over, or the name is in its minimum hold.
func (s lockState) live() bool { return !s.Gone && s.RemainingUS > 0 }

// together returns the live permits, the oldest first.
func (s lockState) together() (live []lockState) {
	for _, p := range s.permits {
		if p.live() {
			live = append(live, p)
		}
	}
	return live
}

// dead returns the permits whose leases are over.
func (s lockState) dead() (dead []lockState) {
	for _, p := range s.permits {
		if !p.live() {
			dead = append(dead, p)
		}
	}
	return dead
}

// has reports whether the lease has a permit with the token.
func (s lockState) has(id []byte, token int64) bool {
	for _, p := range s.permits {
		if p.Token == token && bytes.Equal(p.LeaseID, id) {
			return true
		}
	}
	return false
}

// exclusiveWaiterFor returns for how long an exclusive waiter keeps others from taking permits.
func (s lockState) exclusiveWaiterFor() time.Duration {
	return time.Duration(s.ExclusiveUS) * time.Microsecond
}

// limitOf returns the smallest limit of these permits, or 0 if none has a limit.
func limitOf(permits []lockState) (limit int) {
	for _, p := range permits {
		if n := int(p.Permits.Int64); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
