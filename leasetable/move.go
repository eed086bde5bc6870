package leasetable

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
	"github.com/sqllock/sqllock/schema"
)

// spot is where a lock hangs. A lock only ever moves on to a term that it was never on.
type attachment struct {
	lease   *lease
	pending *lease // nil, or where it hangs if a move was carried out whose answer is not known
}

func (le *Lease) attachedTo() attachment {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.at
}

// ends are the terms that the lock ends with: with the one that ends first.
func (s attachment) ends() []*lease {
	if s.pending == nil {
		return []*lease{s.lease}
	}
	return []*lease{s.lease, s.pending}
}

// settled runs f with the term that the lock hangs on, while nothing else moves it, and returns why the
// lock is over if it is. What f has begun goes on when the caller leaves.
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

// beginSettled waits until nobody else can move the lock. Locker.moves.Done ends that.
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

// moved is what a move came to.
type moved int

const (
	unknown moved = iota // and the lock is over
	stayed
	arrived
	gone // it is nowhere: somebody else took the name
)

// move moves the lock to n, on which a claim has begun. Until the outcome is known the lock hangs on both
// terms, and on every error it hangs where it did or is over. The caller is in settled.
func (le *Lease) move(n *lease) error {
	le.mu.Lock()
	if le.Context().Err() != nil { // a Release that comes later finds both terms
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
	closed := how == unknown && le.Context().Err() == nil // then the end of the terms will tell
	if how != stayed && !closed {
		ls.detach(le)
	}
	if how != arrived && !closed {
		n.detach(le)
	}
	if how == gone {
		le.hold.End(errTaken)
	}
	// A lock that was lost meanwhile, for one of the terms has ended, must not go on hanging on the other.
	switch cause := context.Cause(le.Context()); {
	case cause == nil:
		return err
	case errors.Is(cause, sqllock.ErrReleased): // which sees to the rest
	case how == gone:
		le.leave()
	default:
		le.leaveOrphans(0, map[moved][]*lease{unknown: {ls, n}, stayed: {ls}, arrived: {n}}[how]...)
		ls.detach(le) // the other one, which has not ended, is not kept for a lock that is over
		n.detach(le)
	}
	return context.Cause(le.Context())
}

var errMoveOn = errors.New("the lease that the lock was to be moved to is over")

// tryMove repeats the statement until it is answered, or the lock is over. One that comes late, after a release,
// a handover or another move, finds the name elsewhere.
func (le *Lease) tryMove(ls, n *lease) (how moved, err error) {
	alive, stop := bound.CancelWith(le.locker.closing, le.Context())
	defer stop()
	began, unanswered := time.Now(), false
	for pause := firstPause; ; pause = longer(pause) {
		there := false
		err = once(le.locker.closing, attemptTimeout, func(ctx context.Context) (err error) {
			there, err = ls.store.move(ctx, le.Name(), le.token, ls.id, n.id)
			return err
		})
		switch {
		case err == nil && there:
			return arrived, nil
		case err == nil:
			return gone, errTaken
		}
		unanswered = unanswered || !outcomeKnown(err)
		if !unanswered && (!sqllock.IsRetryable(err) || time.Since(began) > conflictTimeout) {
			return stayed, err
		}
		if sleep(alive, jitter(pause)) != nil {
			if unanswered {
				return unknown, err
			}
			return stayed, err
		}
	}
}

// move moves a name from one lease to another, and reports whether it is there now.
func (s *store) move(ctx context.Context, name string, token int64, from, to []byte) (there bool, err error) {
	args := []any{to, row{[]byte(name)}, token, from}
	if s.dialect == schema.MySQL { // its placeholders have no numbers
		args = append(args, to)
	}
	n, err := s.claim(ctx, move, args...)
	return n != 0, err
}
