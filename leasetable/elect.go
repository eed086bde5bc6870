package leasetable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// Elector elects one leader at a time among all that campaign for a name, in any process: the leader holds the lock
// of that name. Its methods may be called from many goroutines.
type Elector struct {
	locker *Locker
	name   string
	opts   []sqllock.Option
	ttl    time.Duration
}

// NewElector returns an Elector for name. The options are those of the lock: sqllock.WithTTL sets how long a leader
// that died still leads. The default is l's own TTL, the least 200 ms. The error matches sqllock.ErrName if the name
// is invalid, and sqllock.ErrUnsupported for sqllock.WithWait, WithGiveUpEarly, WithShared, WithLimit or an option of
// another backend. The Elector uses l, which the caller closes.
func NewElector(l *Locker, name string, opts ...sqllock.Option) (*Elector, error) {
	if l == nil {
		return nil, errors.New("leasetable: the *Locker is nil")
	}
	c, err := l.choose(name, opts)
	for _, refused := range []struct {
		given bool
		why   string
	}{
		{c.Permit(), "WithShared and WithLimit; there is one leader"},
		{c.wait != nil, "sqllock.WithWait; a campaign lasts as long as its context"},
		{c.early, "WithGiveUpEarly; a campaign lasts as long as its context"},
	} {
		if refused.given {
			err = errors.Join(err, fmt.Errorf("%w: %s", sqllock.ErrUnsupported, refused.why))
		}
	}
	if err != nil {
		return nil, &sqllock.OpError{Op: "elect a leader by", Name: name, Err: err}
	}
	return &Elector{locker: l, name: name, opts: opts, ttl: c.ttl}, nil
}

// mostPause bounds the pauses between campaigns.
const mostPause = 3 * time.Second

// Run campaigns, that is, waits for the name, and calls lead while this process leads. The lease has the token of
// this leadership. lead may use the lease's Guard and Verify; Run releases it.
//
// The context given to lead ends when ctx ends, or when the leadership is lost, as the context of a lock does;
// context.Cause tells which. Then lead must return.
//
//   - When ctx ends, this process leads until lead has returned, however long that takes. Then Run resigns. Meanwhile
//     lease.Context tells whether this process still leads.
//   - When the leadership is lost (sqllock.ErrLost, sqllock.ErrExpired), Run waits until lead has returned, and
//     campaigns again. The next leadership has a higher token. The error of lead is logged (Warn), and returned only if
//     ctx ends before the next campaign begins.
//   - When lead returns by itself, or panics, Run resigns and does not campaign again.
//
// Run returns the errors of lead and of resigning, joined. nil means that lead succeeded, and that this process led
// until lead returned. If resigning is not confirmed, nobody leads until the lease ends.
//
// A campaign waits as [Locker.Acquire] does, so it outlasts a database that cannot be reached, restarts or is
// read-only, as in a failover. Run returns errors that waiting does not mend, such as sqllock.ErrSchema, a password that the
// server has never accepted from this Locker or sqllock.ErrClosed; lead was not called then, or has returned. When ctx ends during a campaign, the
// error matches the cause and, if there was one, the last error of the database.
func (e *Elector) Run(ctx context.Context, lead func(ctx context.Context, lease *Lease) error) error {
	const op = "campaign for"
	if lead == nil {
		return &sqllock.OpError{Op: op, Name: e.name, Err: errors.New("the function that leads is nil")}
	}
	for pause := backoff.First; ; pause = min(2*pause, mostPause) {
		began := time.Now()
		again, err := e.campaign(ctx, lead)
		if !again || ctx.Err() != nil {
			return err
		}
		if time.Since(began) > mostPause { // it went well for a while: the next trouble is a new one
			pause = backoff.First
		}
		e.locker.events.Log(ctx, slog.LevelWarn, "campaigning again", slog.String("lock", e.name), slog.Any("err", err))
		if cause := backoff.Sleep(ctx, jitter.Around(pause)); cause != nil {
			return &sqllock.OpError{Op: op, Name: e.name, Err: fmt.Errorf("%w: %w", cause, err)}
		}
	}
}

// campaign waits for the name, leads and resigns. It reports whether to campaign again, because of err.
func (e *Elector) campaign(
	ctx context.Context, lead func(context.Context, *Lease) error,
) (again bool, err error) {
	lease, err := e.locker.Acquire(ctx, e.name, e.opts...)
	if err != nil {
		return false, err
	}
	var loss error
	defer func() {
		resigned := lease.Release(ctx)
		if sameEnd(loss, resigned) {
			resigned = nil
		}
		if errors.Is(err, loss) { // lead has said it
			loss = nil
		}
		err = errors.Join(err, loss, resigned)
	}()

	work, cancel := bound.CancelWith(ctx, lease.Context())
	defer cancel()
	err = lead(work, lease)
	if cause := context.Cause(lease.Context()); lost(cause) { //nolint:contextcheck // the lock's own
		again, loss = true, cause
	}
	return again, err
}

// sameEnd reports whether two errors say that a lock ended in the same way.
func sameEnd(a, b error) bool {
	return errors.Is(a, sqllock.ErrLost) && errors.Is(b, sqllock.ErrLost) ||
		errors.Is(a, sqllock.ErrExpired) && errors.Is(b, sqllock.ErrExpired)
}

// lost reports whether err says that a lock ended against its holder's will.
func lost(err error) bool {
	return errors.Is(err, sqllock.ErrLost) || errors.Is(err, sqllock.ErrExpired)
}

// Leader returns the leader, and reports whether there is one. It is a read that writes nothing. A process that has
// resigned is not the leader, even while the name is kept ([WithHoldAtLeast]). One that has exported its lease
// ([Lease.Export]) is, until somebody adopts it or it expires. After a failover Leader may go on to ask the old primary, on
// which nobody leads, if that still answers.
func (e *Elector) Leader(ctx context.Context) (leader sqllock.Holder, led bool, err error) {
	state, err := e.locker.inspect(ctx, e.name)
	if err != nil || state.LeaseID == nil || !state.Live() { // a holder of a share or permit does not lead; a kept name has no leader
		return sqllock.Holder{}, false, err
	}
	return state.Holder(), true, nil
}

// Observe yields the leader: at once, and again whenever it has changed. It reads the leader after every interval,
// which must be positive, and writes nothing. It misses a leader that led only between two reads. The zero Holder,
// whose Token is 0, means that nobody leads. Token is the highest given for the name, and that of the leader may be lower:
// leaders of one Locker that follow each other within 25 ms are not told apart. Until is as it was when the leader was yielded, though leaders renew it.
//
// A read that fails yields its error. Observe then goes on, and yields the leader again after the next read that
// succeeds. An error for which sqllock.IsRetryable is false is the last. When ctx ends, the loop ends without an
// error.
//
// After a failover, nobody leads on the old primary. So while Observe finds nobody, and the Locker has no locks, it gives
// up its connections every three TTLs: new ones may lead to the new primary.
func (e *Elector) Observe(ctx context.Context, every time.Duration) iter.Seq2[sqllock.Holder, error] {
	return func(yield func(sqllock.Holder, error) bool) {
		if every <= 0 {
			err := fmt.Errorf("the interval is %v; it must be positive", every)
			yield(sqllock.Holder{}, &sqllock.OpError{Op: "observe", Name: e.name, Err: err})
			return
		}
		var told *sqllock.Holder // nil: nothing was yielded yet, or an error
		fresh := time.Now()      // when there was a leader last, or new connections
		for ; ; _ = backoff.Sleep(ctx, every) {
			reading, cancel := context.WithTimeoutCause(ctx, dberr.AttemptTimeout, dberr.ErrSlow) // the connection may be cut off
			leader, led, err := e.Leader(reading)
			cancel()
			switch keeper := e.locker.keeper; {
			case led:
				fresh = time.Now()
			case time.Since(fresh) > 3*e.ttl && len(keeper.EveryLease()) == 0: // else their renewals find out
				keeper.LeaveReadOnly(sqllock.ErrReadOnly)
				fresh = time.Now()
			}
			switch {
			case bound.Ended(ctx):
				return
			case err != nil:
				told = nil
				if !yield(sqllock.Holder{}, err) || !sqllock.IsRetryable(err) {
					return
				}
			case told == nil || told.Token != leader.Token || !told.Since.Equal(leader.Since):
				told = &leader
				if !yield(leader, nil) {
					return
				}
			}
		}
	}
}
