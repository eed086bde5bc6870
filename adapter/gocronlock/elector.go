package gocronlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable"
)

var _ gocron.Elector = (*Elector)(nil)

// ErrNotLeader says that this process does not lead: another one does, or none.
var ErrNotLeader = errors.New("gocronlock: this process does not lead")

// errClosed is why a campaign ends that Close has ended.
var errClosed = errors.New("gocronlock: the elector is closed")

// pause is the time between a campaign that has failed and the next one.
const pause = 5 * time.Second

// Elector is a gocron.Elector, for gocron.WithDistributedElector. It campaigns in the background from NewElector to Close.
type Elector struct {
	elector *leasetable.Elector
	leads   atomic.Pointer[leasetable.Lease] // nil while this process does not lead
	failed  atomic.Pointer[error]            // why the last campaign failed; nil while there is one

	logger gocron.Logger
	logged string // the last error that was logged, unless this process has led since

	stop context.CancelCauseFunc
	done chan struct{} // closed when there are no more campaigns
	err  error         // of the last campaign; written before done is closed
}

// NewElector begins to campaign for name with leases of l, which the caller closes after the Elector. It does not wait for
// the outcome: until there is one, IsLeader returns ErrNotLeader. The errors and the options of WithLock are those of
// leasetable.NewElector. sqllock.WithTTL sets how long a leader that died still leads; the default is l's TTL.
func NewElector(l *leasetable.Locker, name string, opts ...Option) (*Elector, error) {
	s := choose(opts)
	elector, err := leasetable.NewElector(l, name, s.lock...)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(context.Background())
	e := &Elector{elector: elector, logger: s.logger, stop: stop, done: make(chan struct{})}
	go e.campaign(ctx)
	return e, nil
}

// campaign campaigns until Close. After an error that waiting does not mend it tries again: nobody may be there to restart
// it when the error has been mended.
func (e *Elector) campaign(ctx context.Context) {
	defer close(e.done)
	for {
		e.err = e.run(ctx)
		if ctx.Err() != nil {
			return
		}
		err := e.err
		e.failed.Store(&err)
		e.log(err)
		if errors.Is(err, sqllock.ErrClosed) {
			return
		}
		select {
		case <-time.After(pause):
			e.failed.Store(nil)
		case <-ctx.Done():
			return
		}
	}
}

// errUnreturned is the error of a campaign whose goroutine a hook, or a driver, has ended by runtime.Goexit.
var errUnreturned = errors.New("gocronlock: the campaign ended its goroutine")

// run runs a campaign.
func (e *Elector) run(ctx context.Context) error {
	err := errUnreturned
	var running sync.WaitGroup
	running.Go(func() { err = e.elector.Run(ctx, e.lead) })
	running.Wait()
	return err
}

// log logs why a campaign failed, once while the next ones fail by the same error.
func (e *Elector) log(err error) {
	if text := err.Error(); text != e.logged {
		e.logged = text
		e.logger.Error("gocronlock: this process does not lead", "err", err)
	}
}

// lead lets IsLeader return nil until ctx ends.
func (e *Elector) lead(ctx context.Context, lease *leasetable.Lease) error {
	e.logged = ""
	e.leads.Store(lease)
	defer e.leads.Store(nil)
	<-ctx.Done()
	return nil
}

// IsLeader implements gocron.Elector. It returns nil while this process leads, and else an error that matches ErrNotLeader.
// It answers from memory: while the database cannot be reached, the leader leads until the deadline of its lease.
//
// The campaign goes on while the database cannot be used. If it fails by an error that waiting does not mend, such as
// sqllock.ErrSchema or a wrong password, IsLeader returns that error, too, which is logged once, and the campaign begins again
// after 5 s. If it is sqllock.ErrClosed, the campaign is over.
func (e *Elector) IsLeader(context.Context) error {
	if lease := e.leads.Load(); lease != nil && lease.Remaining() > 0 { // timers may be late after a suspension
		return nil
	}
	if err := e.failed.Load(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotLeader, *err)
	}
	return ErrNotLeader
}

// Close ends the campaign, and resigns if this process leads. It does not end jobs that are running: shut down the
// scheduler first. It returns nil if nobody is kept from leading now. Otherwise the error is that of the last campaign, or
// says that the database did not confirm the resignation; then nobody leads until the lease has expired. Closing again
// returns the same.
func (e *Elector) Close() error {
	e.stop(errClosed)
	<-e.done
	if errors.Is(e.err, errClosed) { // it did not lead
		return nil
	}
	return e.err
}
