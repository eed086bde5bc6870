package leasetable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
)

// wait takes the name as soon as it is free or its lease is over.
func (a *attempt) wait() (*Lease, error) {
	if err := a.turns.Wait(a.ctx, a.name); err != nil {
		return nil, fmt.Errorf("%w: %w", &sqllock.HeldError{Name: a.name}, err)
	}
	return a.inTurn(a.poll)
}

// poll claims the name again and again. While it is held it is only looked at, after pauses
// that grow, and when the holder's lease expires.
func (a *attempt) poll() (*Lease, error) {
	pause := firstPause
	for {
		lease, err := a.claim()
		var held *sqllock.HeldError
		if !errors.As(err, &held) {
			return lease, err
		}
		for {
			if err := sleep(a.ctx, jitter(pause)); err != nil {
				return nil, fmt.Errorf("%w: %w", held, err)
			}
			seen, err := a.look()
			if err != nil {
				return nil, err
			}
			if seen.LeaseID == nil || seen.over() {
				break
			}
			held.Holder = seen.holder()
			remaining := time.Duration(seen.RemainingUS) * time.Microsecond
			pause = min(longer(pause), remaining+time.Millisecond)
		}
	}
}

// look reads who holds the name, on a server that answers within the TTL.
func (a *attempt) look() (sight, error) {
	ctx, cancel := context.WithTimeout(a.ctx, a.ttl)
	defer cancel()
	return a.store.look(ctx, a.name)
}
