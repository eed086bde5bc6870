package cronlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// Option configures Once.
type Option func(*once)

// WithLogger sets the logger: at the level Info it logs skipped runs, at Error runs that failed because the database could
// not be used, and lost leases. The default is cron.DefaultLogger, which prints errors to stdout. With nil nothing is
// logged.
func WithLogger(logger cron.Logger) Option {
	if logger == nil {
		logger = cron.DiscardLogger
	}
	return func(o *once) { o.logger = logger }
}

// WithLock sets options of each acquisition, such as sqllock.WithTTL. The minimum hold stays that of Once.
func WithLock(opts ...sqllock.Option) Option {
	return func(o *once) { o.opts = append(o.opts, opts...) }
}

// Once returns a wrapper that runs a job under the lease called name of l, and skips it while another machine has the
// lease. A lease that is released keeps its name until atLeast after its acquisition. atLeast must be positive: more than
// twice the sum of what the clocks of the machines differ and what an acquisition takes, and less than the time between two runs.
// While the database cannot be used, Once tries again, for half of atLeast, and a minute at most. If that does not help, or the acquisition takes
// longer than atLeast, the job is skipped, too, and the error is logged. Jobs of different names need wrappers of their own.
// The error says what leasetable.Locker.Validate says of the name and the options of WithLock.
//
// The caller closes l when cron has stopped.
func Once(l *leasetable.Locker, name string, atLeast time.Duration, opts ...Option) (cron.JobWrapper, error) {
	switch {
	case l == nil:
		return nil, errors.New("cronlock: the *leasetable.Locker is nil")
	case atLeast <= 0:
		return nil, fmt.Errorf("cronlock: the minimum hold of %q is %s; it must be positive", name, atLeast)
	}
	o := &once{leases: l, name: name, atLeast: atLeast, logger: cron.DefaultLogger}
	for _, opt := range opts {
		opt(o)
	}
	o.opts = append(o.opts, leasetable.WithHoldAtLeast(atLeast)) // the last one counts
	if err := l.Validate(name, o.opts...); err != nil {
		return nil, fmt.Errorf("cronlock: %w", err)
	}
	return func(job cron.Job) cron.Job { return cron.FuncJob(func() { o.run(job) }) }, nil
}

type once struct {
	leases  *leasetable.Locker
	name    string
	atLeast time.Duration
	opts    []sqllock.Option
	logger  cron.Logger
}

func (o *once) run(job cron.Job) {
	lease, err := o.acquire()
	switch {
	case errors.Is(err, sqllock.ErrHeld):
		o.logger.Info("skip: another machine runs the job, or has run it", "lock", o.name)
	case err != nil:
		o.logger.Error(err, "the job was skipped", "lock", o.name)
	default:
		defer o.release(lease) // also when the job panics
		job.Run()
	}
}

// acquire tries for the minimum hold at most: another machine may then have run the job, and its minimum hold have passed. It
// begins no attempt in the second half of it, which is for the clocks and for the attempt.
func (o *once) acquire() (*leasetable.Lease, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.atLeast,
		fmt.Errorf("cronlock: it took longer than the minimum hold, %s", o.atLeast))
	defer cancel()
	return retry(ctx, o.atLeast/2, func() (*leasetable.Lease, error) { return o.leases.TryAcquire(ctx, o.name, o.opts...) })
}

// release releases the lease after a run, and logs an error.
func (o *once) release(lease *leasetable.Lease) {
	switch err := lease.Release(context.Background()); {
	case err == nil:
	case ended(err):
		o.logger.Error(err, "the job ran, and its lock ended before", "lock", o.name)
	default:
		o.logger.Error(err, "the job ran, and the release of its lock is not confirmed", "lock", o.name)
	}
}

// ended reports whether err, of a release, says that the lock had ended before.
func ended(err error) bool {
	return errors.Is(err, sqllock.ErrLost) || errors.Is(err, sqllock.ErrExpired) || errors.Is(err, sqllock.ErrClosed)
}
