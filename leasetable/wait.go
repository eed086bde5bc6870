package leasetable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bound"
)

// wait takes the name as soon as it is free or its lease is over.
func (a *attempt) wait() (*Lease, error) {
	a.waited = !a.turns.Try(a.name)
	if !a.waited {
		return a.inTurn(a.poll)
	}
	if _, err := a.turns.Wait(a.ctx, a.name); err != nil {
		return nil, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return a.inTurn(a.poll)
}

// poll asks for the name again and again, after pauses that grow. A claim that is not answered is
// repeated as well: it may wait for a row that somebody else has locked. A database that cannot
// be asked is borne with for as long as a TTL, once the name was seen held.
func (a *attempt) poll() (*Lease, error) {
	lease, err := a.claim()
	var held *sqllock.HeldError
	for pause, heard := firstPause, time.Now(); err != nil; pause = longer(pause) {
		now := (*sqllock.HeldError)(nil)
		switch {
		case errors.As(err, &now):
			held, heard, a.waited = now, time.Now(), true
		case a.left:
			return nil, a.stillHeld(held, err)
		case errors.Is(err, errSlow) && !errors.Is(err, errNoLease):
		case held == nil || !sqllock.IsRetryable(err) || time.Since(heard) > a.ttl:
			return nil, a.stillHeld(held, err)
		}
		if err := sleep(a.ctx, jitter(pause)); err != nil {
			return nil, a.stillHeld(held, err)
		}
		lease, err = a.lookAndClaim()
	}
	return lease, nil
}

// lookAndClaim claims the name unless a look, which writes nothing, finds it held.
func (a *attempt) lookAndClaim() (*Lease, error) {
	seen, err := a.look()
	if err != nil {
		return nil, err
	}
	if seen.LeaseID != nil && !seen.over() {
		return nil, &sqllock.HeldError{Name: a.name, Holder: seen.holder()}
	}
	return a.claim()
}

// look reads who holds the name.
func (a *attempt) look() (seen sight, err error) {
	err = once(a.ctx, attemptTimeout, func(ctx context.Context) (err error) {
		seen, err = a.store.look(ctx, a.name)
		return err
	})
	return seen, err
}

// stillHeld is the error of a wait: when its context has ended, it says of the name as well that
// it is held, if it was seen to be.
func (a *attempt) stillHeld(held *sqllock.HeldError, err error) error {
	if held == nil || !bound.Ended(a.ctx) {
		return err
	}
	return fmt.Errorf("%w: %w", held, context.Cause(a.ctx))
}
