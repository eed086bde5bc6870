package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/backoff"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
)

// ErrPermit rejects what only an exclusive lock can do.
var ErrPermit = fmt.Errorf("%w: several hold the name together", sqllock.ErrUnsupported)

// settled is a lock that no other call can move.
type settled struct{ *Held }

// whenSettled runs f while no other call moves the lock. If the lock is over it returns why. If the caller leaves, f goes on.
func (h *Held) whenSettled(ctx context.Context, f func(ctx context.Context, h settled) error) error {
	l := h.Keeper
	ctx, cancel := l.Bound(ctx)
	defer cancel()
	still, err := h.beginSettled(ctx)
	if err != nil {
		return l.WithCause(ctx, err)
	}
	_, _, err = OrLeave(ctx, l.Start, func() (none struct{}, err error) {
		defer l.moves.Done(h)
		return none, f(ctx, still)
	}, nil)
	if err != nil {
		return l.WithCause(ctx, err)
	}
	return h.OverNow() //nolint:contextcheck // the lock has a context of its own
}

// beginSettled waits until no other call can move the lock. Keeper.moves.Done ends that.
func (h *Held) beginSettled(ctx context.Context) (still settled, err error) {
	if h.Permit {
		return still, ErrPermit
	}
	ctx, cancel := bound.CancelWith(ctx, h.Hold.Context())
	defer cancel()
	if _, err := h.Keeper.moves.Wait(ctx, h); err != nil {
		return still, err
	}
	err = h.touch() //nolint:contextcheck // the lock has a context of its own
	if err == nil && bound.Ended(ctx) {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.Keeper.moves.Done(h)
	}
	return settled{h}, err
}

// moved is the outcome of a move.
type moved int

const (
	unknown moved = iota // and the lock or the Locker is over
	stayed
	arrived
	gone // the lock is on neither lease: the name was taken by another holder, or freed
)

// move is a move of a lock from one lease to another. Until its outcome is known the lock is attached to both (I27).
type move struct {
	h        *Held
	from, to *Lease
}

// move moves the lock to a lease on which a claim has begun. After an error the lock is attached as before, or it is
// over.
func (h settled) move(to *Lease) error {
	defer to.endClaim()
	if !h.position.use() { // the lock is over
		return h.over()
	}
	defer h.position.letGo()
	h.mu.Lock()
	if err := h.over(); err != nil { // a later Release finds both leases
		h.mu.Unlock()
		return err
	}
	m := move{h.Held, h.at.Lease, to}
	h.at.pending = to
	h.mu.Unlock()

	how := stayed
	err := to.Join(h.Held)
	if err == nil {
		how, err = m.try()
	}
	return m.settle(how, err)
}

// settle attaches the lock where the move has left it. err is the error of the move.
func (m move) settle(how moved, err error) error {
	h := m.h
	h.mu.Lock()
	switch how {
	case unknown: // the release finds out
	case arrived:
		h.previous = append(h.previous, m.from)
		h.at = attachment{Lease: m.to}
	case stayed, gone:
		h.at.pending = nil
	}
	h.mu.Unlock()
	closed := how == unknown && h.over() == nil // only the Locker is over, which ends both leases
	if how != stayed && !closed {
		m.from.detach(h)
	}
	if how != arrived && !closed {
		m.to.detach(h)
	}
	if how == gone {
		h.Hold.End(errTaken)
	}
	// If one of the leases ended meanwhile, the lock is lost. It must not stay attached to the other lease.
	switch cause := h.over(); {
	case cause == nil:
		return err
	case errors.Is(cause, sqllock.ErrReleased): // the release does the rest
	case how == gone:
		h.position.leave()
	default:
		h.leaveOrphans(0, map[moved][]*Lease{unknown: {m.from, m.to}, stayed: {m.from}, arrived: {m.to}}[how]...)
		m.from.detach(h) // the other lease must not be renewed for a lock that is over
		m.to.detach(h)
	}
	return h.over()
}

var errMoveOn = errors.New("the lease that the lock was to be moved to is over")

// try repeats the statement until it is answered, or the lock is over. A statement that runs late, after a release,
// a handover or another move, changes nothing: the name is no longer on the old lease.
func (m move) try() (moved, error) {
	alive, stop := bound.CancelWith(m.h.Keeper.Closing, m.h.Hold.Context())
	defer stop()
	began, unanswered := time.Now(), false
	for pause := backoff.First; ; pause = backoff.Patient(pause, began) {
		there := false
		err := m.h.Keeper.survive(func() error {
			return dberr.Once(m.h.Keeper.Closing, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
				there, err = m.from.store.Move(ctx, m.h.Name, m.h.Token, m.from.ID, m.to.ID)
				return err
			})
		})
		switch {
		case err == nil && there:
			return arrived, nil
		case err == nil:
			return gone, errTaken
		}
		unanswered = unanswered || !dberr.OutcomeKnown(err)
		if !unanswered && (!sqllock.IsRetryable(err) || time.Since(began) > dberr.ConflictTimeout) {
			return stayed, err
		}
		if backoff.Sleep(alive, jitter.Around(pause)) != nil {
			if unanswered {
				return unknown, err
			}
			return stayed, err
		}
	}
}
