package store

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
)

// State is a row of a statement that reads or lists names and permits: the state of a name, or of one of its
// permits.
type State struct {
	Name        raw    `db:"name"` // of statements for several names
	Token       int64  `db:"token"`
	LeaseID     raw    `db:"lease_id"` // nil: no lease holds the name
	Gone        bool   `db:"gone"`     // the lease row is gone: the lease is over for good
	Owner       string `db:"owner"`
	Host        string `db:"host"`
	PID         int    `db:"pid"`
	AcquiredUS  int64  `db:"acquired_us"`
	ExpiresUS   int64  `db:"expires_us"`   // the end of the lease or, without a lease, of the minimum hold
	RemainingUS int64  `db:"remaining_us"` // time until then
	TTLUS       int64  `db:"ttl_us"`
	Renewals    int64  `db:"renewals"`
	WaiterUS    int64  `db:"waiter_us"` // of read_state and list: since when another process waits for the name; 0: no waiter is known
	Metadata    raw    `db:"metadata"`

	// Limit is set for a name with shares or permits, also when the last of them was released, and for each share or
	// permit. It is the limit that the latest acquisition of the name, or this holder, requested; 0: no limit.
	Limit       sql.NullInt64 `db:"permits"`
	ExclusiveUS int64         `db:"exclusive_us"` // for how long no share or permit is granted, because a waiter wants the whole name
	Permit      bool          `db:"permit"`       // the row is a share or permit
	Permits     []State       `db:"-"`            // the rows of the shares and permits; set by ReadPermits and List, by token
}

// raw is bytes that a statement returns as they are or, on PostgreSQL, as text in hex: the form of bytes in a text
// protocol depends on bytea_output there.
type raw []byte

func (r *raw) Scan(from any) (err error) {
	switch from := from.(type) {
	case nil:
		*r = nil
	case []byte:
		*r = append(raw{}, from...) // not nil, even if a driver gives nil for no bytes
	case string:
		*r, err = hex.DecodeString(from)
	default:
		err = fmt.Errorf("leasetable: the driver gives %T for bytes", from)
	}
	return err
}

// A row may have been written by hand, with any number.
const (
	lastUS = 253402300799_999999         // the end of the year 9999, the last that JSON can represent
	farUS  = 100 * 365 * 24 * 3600 * 1e6 // sums of such durations do not overflow
)

// Time returns the time so many microseconds after 1970.
func Time(us int64) time.Time { return time.UnixMicro(min(max(us, 0), lastUS)) }

// Micros returns so many microseconds, or 100 years.
func Micros(us int64) time.Duration {
	return time.Duration(min(max(us, -farUS), farUS)) * time.Microsecond
}

// Taken reports whether live leases hold the name, or the name is in its minimum hold.
func (s State) Taken() bool { return s.Live() || len(s.Together()) > 0 }

// Holder returns the holder, or the holder of the oldest live permit.
func (s State) Holder() sqllock.Holder {
	if together := s.Together(); len(together) > 0 {
		return together[0].Holder()
	}
	return sqllock.Holder{
		Owner: s.Owner,
		Host:  s.Host,
		PID:   s.PID,
		Token: s.Token,
		Since: Time(s.AcquiredUS),
		Until: Time(s.ExpiresUS),
		TTL:   Micros(s.TTLUS),

		Metadata: string(s.Metadata),
	}
}

// Age returns for how long the name has not changed hands, or 0 if the state does not tell.
func (s State) Age() time.Duration {
	dated := s
	if s.ExpiresUS == 0 && len(s.Permits) > 0 {
		dated = s.Permits[0]
	}
	if dated.ExpiresUS == 0 {
		return 0
	}
	return Micros(max(0, dated.ExpiresUS-dated.RemainingUS-s.AcquiredUS))
}

// Live reports whether the lease of the row is not over, or the name is in its minimum hold.
func (s State) Live() bool { return !s.Gone && s.RemainingUS > 0 }

// Together returns the live permits, the oldest first.
func (s State) Together() []State {
	return slices.DeleteFunc(slices.Clone(s.Permits), func(p State) bool { return !p.Live() })
}

// Dead returns the permits whose leases are over.
func (s State) Dead() []State {
	return slices.DeleteFunc(slices.Clone(s.Permits), State.Live)
}

// Has reports whether the lease has a permit with the token.
func (s State) Has(id []byte, token int64) bool {
	return slices.ContainsFunc(s.Permits, func(p State) bool { return p.Token == token && bytes.Equal(p.LeaseID, id) })
}

// ExclusiveTime is for how long an exclusive waiter, once noted, keeps others from taking permits.
const ExclusiveTime = 5 * time.Second

// ExclusiveWaiterFor returns for how long an exclusive waiter keeps others from taking permits. A note for longer does not
// count: the database's clock was set back since.
func (s State) ExclusiveWaiterFor() time.Duration {
	left := Micros(s.ExclusiveUS)
	if left > ExclusiveTime {
		return 0
	}
	return left
}

// LimitOf returns the smallest limit of these permits, or 0 if none has a limit.
func LimitOf(permits []State) (limit int) {
	for _, p := range permits {
		if n := int(min(p.Limit.Int64, math.MaxInt)); n > 0 && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit
}
