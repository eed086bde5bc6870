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
type spot struct {
	term *term
	next *term // nil, or where it hangs if a move was carried out whose answer is not known
}

func (le *Lease) spot() spot {
	le.mu.Lock()
	defer le.mu.Unlock()
	return le.at
}

// ends are the terms that the lock ends with: with the one that ends first.
func (s spot) ends() []*term {
	if s.next == nil {
		return []*term{s.term}
	}
	return []*term{s.term, s.next}
}

// settled runs f with the term that the lock hangs on, while nothing else moves it, and returns why the
// lock is over if it is. What f has begun goes on when the caller leaves.
func (le *Lease) settled(ctx context.Context, f func(ctx context.Context, t *term) error) error {
	l := le.locker
	ctx, cancel := l.bound(ctx)
	defer cancel()
	done := make(chan error, 1)
	err := le.beginSettled(ctx)
	if err == nil {
		err = l.start(func() {
			defer l.moves.Done(le)
			done <- f(ctx, le.spot().term)
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
		return l.because(ctx, err)
	case le.Context().Err() != nil:
		return context.Cause(le.Context()) //nolint:contextcheck // the lock has a context of its own
	}
	return nil
}

// beginSettled waits until nobody else can move the lock. Locker.moves.Done ends that.
func (le *Lease) beginSettled(ctx context.Context) error {
	if le.place {
		return errPlace
	}
	ctx, cancel := bound.By(ctx, le.Context())
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
func (le *Lease) move(n *term) error {
	le.mu.Lock()
	if le.Context().Err() != nil { // a Release that comes later finds both terms
		le.mu.Unlock()
		n.endClaim()
		return context.Cause(le.Context())
	}
	t := le.at.term
	le.at.next = n
	le.kept++
	le.mu.Unlock()
	defer le.letGo()
	defer n.endClaim()

	how := stayed
	err := n.join(le)
	if err == nil {
		how, err = le.tryMove(t, n)
	}
	le.mu.Lock()
	switch how {
	case unknown: // the release finds out
	case arrived:
		le.was = append(le.was, t)
		le.at = spot{term: n}
	case stayed, gone:
		le.at.next = nil
	}
	le.mu.Unlock()
	closed := how == unknown && le.Context().Err() == nil // then the end of the terms will tell
	if how != stayed && !closed {
		t.detach(le)
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
		le.leaveStrays(0, map[moved][]*term{unknown: {t, n}, stayed: {t}, arrived: {n}}[how]...)
		t.detach(le) // the other one, which has not ended, is not kept for a lock that is over
		n.detach(le)
	}
	return context.Cause(le.Context())
}

var errMoveOn = errors.New("the lease that the lock was to be moved to is over")

// tryMove repeats the statement until it is answered, or the lock is over. One that comes late, after a release,
// a handover or another move, finds the name elsewhere.
func (le *Lease) tryMove(t, n *term) (how moved, err error) {
	alive, stop := bound.By(le.locker.closing, le.Context())
	defer stop()
	began, unanswered := time.Now(), false
	for pause := firstPause; ; pause = longer(pause) {
		there := false
		err = once(le.locker.closing, attemptTimeout, func(ctx context.Context) (err error) {
			there, err = t.store.move(ctx, le.Name(), le.token, t.id, n.id)
			return err
		})
		switch {
		case err == nil && there:
			return arrived, nil
		case err == nil:
			return gone, errTaken
		}
		unanswered = unanswered || !answered(err)
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
