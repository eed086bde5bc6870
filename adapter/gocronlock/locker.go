package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

var _ gocron.Locker = (*Locker)(nil)

// Locker is a gocron.Locker, for gocron.WithDistributedLocker and gocron.WithDistributedJobLocker. Its jobs must be due at
// the same time on all machines, which a DurationJob is not by itself; see the package documentation.
type Locker struct {
	leases  *leasetable.Locker
	atLeast time.Duration
	opts    []sqllock.Option
	logger  gocron.Logger
}

// NewLocker returns a Locker that takes leases from l, which the caller closes after the scheduler. A lease that is released
// keeps its name until atLeast after its acquisition. atLeast must be positive: more than twice the sum of what the
// clocks of the machines differ and what an acquisition takes, and less than the time between two runs. The error says what
// leasetable.Locker.Validate says of the options of WithLock.
func NewLocker(l *leasetable.Locker, atLeast time.Duration, opts ...Option) (*Locker, error) {
	switch {
	case l == nil:
		return nil, errors.New("gocronlock: the *leasetable.Locker is nil")
	case atLeast <= 0:
		return nil, fmt.Errorf("gocronlock: the minimum hold is %s; it must be positive", atLeast)
	}
	s := choose(opts)
	options := append(slices.Clip(s.lock), leasetable.WithHoldAtLeast(atLeast)) // the last one counts
	if err := l.Validate("a job", options...); err != nil {
		return nil, fmt.Errorf("gocronlock: %w", err)
	}
	return &Locker{leases: l, atLeast: atLeast, opts: options, logger: s.logger}, nil
}

// Lock implements gocron.Locker: it acquires the lease called key, the name of a job. It does not wait for another machine:
// if the lease is held, or was released and its minimum hold has not passed, the error matches sqllock.ErrHeld. While the
// database cannot be used, it tries again, for half of the minimum hold, and a minute at most. An acquisition that takes longer than the minimum
// hold fails: another machine may have run the job, and its minimum hold have passed. After any error nothing is held, and
// gocron does not run the job. An error that does not match sqllock.ErrHeld is logged, unless ctx has ended: then the
// scheduler shuts down, or the job is removed.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	within, cancel := context.WithTimeoutCause(ctx, l.atLeast, fmt.Errorf("gocronlock: it took longer than the minimum hold, %s", l.atLeast))
	defer cancel()
	lease, err := retry(within, l.atLeast/2, func() (*leasetable.Lease, error) { return l.leases.TryAcquire(within, key, l.opts...) })
	switch {
	case err == nil:
		return held{lease, key, l.logger}, nil
	case errors.Is(err, sqllock.ErrHeld):
		l.logger.Debug("gocronlock: the job was skipped: another machine runs it, or has run it", "lock", key)
	case ctx.Err() == nil:
		l.logger.Error("gocronlock: the job was skipped", "lock", key, "err", err)
	}
	return nil, err
}

type held struct {
	lease  *leasetable.Lease
	key    string
	logger gocron.Logger
}

// Unlock implements gocron.Lock. It logs an error, which gocron ignores.
func (h held) Unlock(ctx context.Context) error {
	err := h.lease.Release(ctx)
	switch {
	case err == nil:
	case errors.Is(err, sqllock.ErrLost), errors.Is(err, sqllock.ErrExpired), errors.Is(err, sqllock.ErrClosed):
		h.logger.Error("gocronlock: the job ran, and its lock ended before", "lock", h.key, "err", err)
	default:
		h.logger.Error("gocronlock: the job ran, and the release of its lock is not confirmed", "lock", h.key, "err", err)
	}
	return err
}
