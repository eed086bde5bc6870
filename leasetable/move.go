package leasetable

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/leasetable/internal/backoff"
	"github.com/sqllock/sqllock/leasetable/internal/dberr"
	"github.com/sqllock/sqllock/leasetable/internal/store"
)

// attachment says which lease a lock is attached to. A lock only ever moves to a lease that it was never attached to
// before.
type attachment struct {
	lease   *lease
	pending *lease // nil, or the lease that it is attached to if a move with an unknown outcome was carried out
}

func (le *Lease) attachedTo() attachment {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.at
}

// ends returns the leases that end the lock. The one that ends first does.
func (s attachment) ends() []*lease {
	if s.pending == nil {
		return []*lease{s.lease}
	}
	return []*lease{s.lease, s.pending}
}

// heldOn returns what the table has of this lock while it is attached to ls.
func (le *Lease) heldOn(ls *lease) store.Held {
	return store.Held{Name: le.Name(), Lease: ls.id, Token: le.token, Permit: le.permit}
}

// settled runs f with the lease that the lock is attached to, while nothing else moves the lock. If the lock is over it
// returns why. If the caller leaves, f goes on.
func (le *Lease) settled(ctx context.Context, f func(ctx context.Context, ls *lease) error) error {
	l := le.locker
	ctx, cancel := l.bound(ctx)
	defer cancel()
	done := make(chan error, 1)
	err := le.beginSettled(ctx)
	if err == nil {
		err = l.start(func() {
			defer l.moves.Done(le)
			done <- f(ctx, le.attachedTo().lease)
		})
		if err != nil {
			l.moves.Done(le)
		}
	}
	if err == nil {
		select {
		case err = <-done:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	switch {
	case err != nil:
		return l.withCause(ctx, err)
	case le.Context().Err() != nil:
		return context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	return nil
}

// beginSettled waits until no other call can move the lock. Locker.moves.Done ends that.
func (le *Lease) beginSettled(ctx context.Context) error {
	if le.permit {
		return errPermit
	}
	ctx, cancel := bound.CancelWith(ctx, le.Context())
	defer cancel()
	if _, err := le.locker.moves.Wait(ctx, le); err != nil {
		return err
	}
	if bound.Ended(ctx) {
		le.locker.moves.Done(le)
		return context.Cause(ctx)
	}
	return nil
}

// moved is the outcome of a move.
type moved int

const (
	unknown moved = iota // and the lock or the Locker is over
	stayed
	arrived
	gone // the lock is on neither lease: the name was taken by another holder, or freed
)

// move moves the lock to n, on which a claim has begun. Until the outcome is known the lock is attached to both leases.
// After an error the lock is attached as before, or it is over. The caller is in settled.
func (le *Lease) move(n *lease) error {
	le.mu.Lock()
	if le.Context().Err() != nil { // a later Release finds both leases
		le.mu.Unlock()
		n.endClaim()
		return context.Cause(le.Context())
	}
	ls := le.at.lease
	le.at.pending = n
	le.queueUsers++
	le.mu.Unlock()
	defer le.letGo()
	defer n.endClaim()

	how := stayed
	err := n.join(le)
	if err == nil {
		how, err = le.tryMove(ls, n)
	}
	le.mu.Lock()
	switch how {
	case unknown: // the release finds out
	case arrived:
		le.previous = append(le.previous, ls)
		le.at = attachment{lease: n}
	case stayed, gone:
		le.at.pending = nil
	}
	le.mu.Unlock()
	closed := how == unknown && le.Context().Err() == nil // only the Locker is over, which ends both leases
	if how != stayed && !closed {
		ls.detach(le)
	}
	if how != arrived && !closed {
		n.detach(le)
	}
	if how == gone {
		le.hold.End(errTaken)
	}
	// If one of the leases ended meanwhile, the lock is lost. It must not stay attached to the other lease.
	switch cause := context.Cause(le.Context()); {
	case cause == nil:
		return err
	case errors.Is(cause, sqllock.ErrReleased): // the release does the rest
	case how == gone:
		le.leave()
	default:
		le.leaveOrphans(0, map[moved][]*lease{unknown: {ls, n}, stayed: {ls}, arrived: {n}}[how]...)
		ls.detach(le) // the other lease must not be renewed for a lock that is over
		n.detach(le)
	}
	return context.Cause(le.Context())
}

var errMoveOn = errors.New("the lease that the lock was to be moved to is over")

// tryMove repeats the statement until it is answered, or the lock is over. A statement that runs late, after a release,
// a handover or another move, changes nothing: the name is no longer on the old lease.
func (le *Lease) tryMove(ls, n *lease) (how moved, err error) {
	alive, stop := bound.CancelWith(le.locker.closing, le.Context())
	defer stop()
	began, unanswered := time.Now(), false
	for pause := backoff.First; ; pause = backoff.Longer(pause) {
		there := false
		err = dberr.Once(le.locker.closing, dberr.AttemptTimeout, func(ctx context.Context) (err error) {
			there, err = ls.store.Move(ctx, le.Name(), le.token, ls.id, n.id)
			return err
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
		if backoff.Sleep(alive, backoff.Jitter(pause)) != nil {
			if unanswered {
				return unknown, err
			}
			return stayed, err
		}
	}
}
