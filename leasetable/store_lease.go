package leasetable

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/schema"
)

// leaseRow is a new row of the table of leases.
type leaseRow struct {
	id          []byte
	owner, host string
	ttl         time.Duration
	ticket      bool // it is for a ticket: nobody renews it
}

// errNoLease is the prefix of the reason why there is no lease to claim with.
var errNoLease = errors.New("open a lease")

// errOldProgram refuses tables whose lowest program version is above that of this program; see docs/upgrading.md.
var errOldProgram = fmt.Errorf("%w: the tables take a later release of this program: upgrade it (`sqllock schema check` says to which version)", sqllock.ErrSchema)

// openLease commits a lease row, and returns when the statement was sent. It connects first: the statement has less
// time than connecting may take. The error matches errNoLease. After an error the row may be there, but nothing refers
// to it, and it expires.
func (s *store) openLease(ctx context.Context, l leaseRow, within time.Duration) (sent time.Time, err error) {
	p := s.renewals
	if l.ticket {
		p = s.work
	}
	if err := once(ctx, connectTimeout, p.connected); err != nil {
		return sent, fmt.Errorf("%w: %w", errNoLease, err)
	}
	err = retryConflicts(ctx, func(ctx context.Context) error {
		sent = clock.Now()
		return once(ctx, min(within, attemptTimeout), func(ctx context.Context) error {
			us := l.ttl.Microseconds()
			rows, err := s.change(ctx, p, openLease, l.id, l.owner, l.host, os.Getpid(), us, us, schema.Version)
			if err == nil && rows == 0 {
				err = errOldProgram
			}
			return err
		})
	})
	if err != nil {
		if within < attemptTimeout && errors.Is(err, errSlow) && ctx.Err() == nil {
			err = fmt.Errorf("%w within the %v that a TTL of %v leaves: it has to be longer here", err, within, l.ttl)
		}
		return sent, fmt.Errorf("%w: %w", errNoLease, err)
	}
	return sent, nil
}

// renew renews a lease. It reports whether the lease row was there, and returns the count of changes that others made
// to the locks of the lease.
func (s *store) renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	return s.changeNumber(ctx, s.renewals, renew, id)
}

// endLease deletes a lease row, and so frees all that the lease holds. It uses the connection for renewals.
func (s *store) endLease(ctx context.Context, id []byte) error {
	_, err := s.change(ctx, s.renewals, endLease, id)
	return err
}

// endTicket deletes the lease row of a ticket. It may wait for the row.
func (s *store) endTicket(ctx context.Context, id []byte) error {
	_, err := s.change(ctx, s.work, endLease, row{id})
	return err
}

// expire deletes the row of a lease that has expired, and reports whether it did. A renewal that comes before keeps the
// lease alive; a renewal that comes after finds no row.
func (s *store) expire(ctx context.Context, id []byte) (expired bool, err error) {
	rows, err := s.change(ctx, s.work, expire, row{id})
	return rows > 0, err
}

// expireUnchanged deletes the row of a lease that was not renewed since its renewals were counted, and reports whether
// it did.
func (s *store) expireUnchanged(ctx context.Context, id []byte, renewals int64) (expired bool, err error) {
	rows, err := s.change(ctx, s.work, expireUnchanged, row{id}, renewals)
	return rows > 0, err
}

// purge deletes up to limit rows of leases that expired at least the given time ago, and returns how many.
func (s *store) purge(ctx context.Context, ago time.Duration, limit int) (int64, error) {
	return s.change(ctx, s.work, purge, max(ago, 0).Microseconds(), limit)
}
