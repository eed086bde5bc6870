package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/clock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/leasetable/internal/conn"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/schema"
)

// leaseSteps opens, renews and ends lease rows.
type leaseSteps struct{ *database }

// LeaseRow is a new row of the table of leases.
type LeaseRow struct {
	ID          []byte
	Owner, Host string
	TTL         time.Duration
	Ticket      bool // it is for a ticket: nobody renews it
}

// ErrNoLease is the prefix of the reason why there is no lease to claim with.
var ErrNoLease = errors.New("open a lease")

func (s leaseSteps) OpenLease(ctx context.Context, l LeaseRow, within time.Duration) (sent time.Time, err error) {
	p := s.Renewals
	if l.Ticket {
		p = s.Work
	}
	if err := dberr.Once(ctx, conn.ConnectTimeout, p.Connected); err != nil {
		return sent, fmt.Errorf("%w: %w", ErrNoLease, err)
	}
	limit := within
	err = dberr.RetryConflicts(ctx, dberr.ConflictTimeout, func(ctx context.Context) error {
		limit = p.Within(min(within, dberr.AttemptTimeout))
		return p.Beside(ctx, limit, func(ctx context.Context) error {
			sent = clock.Now()
			rows, err := s.change(ctx, p, openLease, l.ID, l.Owner, l.Host, os.Getpid(), l.TTL.Microseconds(), schema.Version)
			switch {
			case exists(err): // the driver, or a proxy, has repeated it: the answer was lost
				err = &dberr.Error{Err: err, Transient: true}
			case err == nil && rows == 0:
				err = errOldProgram
			}
			return err
		})
	})
	if err != nil {
		if limit == within && errors.Is(err, dberr.ErrSlow) && !errors.Is(err, dberr.ErrUnsent) && ctx.Err() == nil {
			err = fmt.Errorf("%w within the %v that a TTL of %v leaves: it has to be longer here", err, within, l.TTL)
		}
		return sent, fmt.Errorf("%w: %w", ErrNoLease, err)
	}
	return sent, nil
}

func (s leaseSteps) Renew(ctx context.Context, id []byte) (there bool, changes int64, err error) {
	return s.changeNumber(ctx, s.Renewals, renew, id)
}

func (s leaseSteps) EndLease(ctx context.Context, id []byte) error {
	return s.Renewals.Beside(ctx, s.Renewals.Within(dberr.AttemptTimeout), func(ctx context.Context) error {
		_, err := s.change(ctx, s.Renewals, endLease, id)
		return err
	})
}

func (s leaseSteps) Expire(ctx context.Context, id []byte) (expired bool, err error) {
	rows, err := s.change(ctx, s.Work, expire, row{id})
	return rows > 0, err
}

func (s leaseSteps) ExpireUnchanged(ctx context.Context, id []byte, renewals int64) (expired bool, err error) {
	rows, err := s.change(ctx, s.Work, expireUnchanged, row{id}, renewals)
	return rows > 0, err
}

func (s leaseSteps) Expired(ctx context.Context, ago time.Duration, limit int) ([]State, error) {
	return s.states(ctx, expired, max(ago, 0).Microseconds(), limit)
}

// exists reports whether err means that the row to insert exists already.
func exists(err error) bool {
	return slices.Contains([]string{"23505", "mysql 1062"}, connector.CodeOf(err))
}
