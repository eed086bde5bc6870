package gocronlock

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

// Pauses between two attempts, without their jitter.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// mostTime bounds retry: a job does not come much later than it was due, and a shutdown need not wait for longer.
const mostTime = time.Minute

// retry calls try again while the database cannot be used, for the given time and mostTime at most. All machines try at the same moment,
// so a server that restarts just then would keep the job from all of them. It does not wait for another holder: that one
// runs the job.
func retry(ctx context.Context, within time.Duration, try func() (*leasetable.Lease, error)) (*leasetable.Lease, error) {
	began := time.Now()
	var failed error // why the attempt before failed
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		lease, err := try()
		switch {
		case failed != nil && heldHere(err): // by an attempt whose answer was lost, until the Locker has given it back
			err = failed
		case err == nil, errors.Is(err, sqllock.ErrHeld), !sqllock.IsRetryable(err):
			return lease, err
		}
		failed = err
		rest := pause/2 + rand.N(pause) //nolint:gosec // jitter
		if time.Since(began)+rest > min(within, mostTime) {
			return nil, err
		}
		select {
		case <-time.After(rest):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// heldHere reports whether err says that this process holds the name.
func heldHere(err error) bool {
	host, _ := os.Hostname()
	var held *sqllock.HeldError
	return errors.As(err, &held) && held.Holder.PID == os.Getpid() && held.Holder.Host == host
}
