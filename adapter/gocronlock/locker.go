package gocronlock

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

var _ gocron.Locker = (*Locker)(nil)

// Locker is a gocron.Locker, for gocron.WithDistributedLocker and gocron.WithDistributedJobLocker.
type Locker struct {
	leases *leasetable.Locker
	opts   []sqllock.Option
}

// NewLocker returns a Locker that takes leases from l, which the caller closes after the scheduler. A lease that is released
// keeps its name until atLeast after its acquisition. atLeast must be positive: more than the clocks of the machines
// differ, and less than the time between two runs. The options are those of each acquisition.
func NewLocker(l *leasetable.Locker, atLeast time.Duration, opts ...sqllock.Option) (*Locker, error) {
	if atLeast <= 0 {
		return nil, fmt.Errorf("gocronlock: the minimum hold is %s; it must be positive", atLeast)
	}
	return &Locker{leases: l, opts: append([]sqllock.Option{leasetable.WithHoldAtLeast(atLeast)}, opts...)}, nil
}

// Lock implements gocron.Locker: it acquires the lease called key, the name of a job. It does not wait: if the lease is
// held, or was released and its minimum hold has not passed, the error matches sqllock.ErrHeld. After any error nothing is
// held, and gocron does not run the job.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.leases.TryAcquire(ctx, key, l.opts...)
	if err != nil {
		return nil, err
	}
	return held{lease}, nil
}

type held struct{ lease *leasetable.Lease }

// Unlock implements gocron.Lock.
func (h held) Unlock(ctx context.Context) error { return h.lease.Release(ctx) }
