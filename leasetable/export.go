package leasetable

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

// Export ends the lock here and returns a ticket. [Locker.Adopt], in any process, acquires the lock with it. Until
// then nobody else can acquire the name, for the time valid from now, which nothing prolongs: 200 ms to a year. If
// that passes without an adoption, the name is free. The Locker may be closed meanwhile.
//
// The lock's context ends with a cause that matches sqllock.ErrReleased. Release does nothing afterwards, and
// WithHoldAtLeast no longer applies. End guarded transactions before, because the export waits for them.
//
// A ticket is good for one adoption. It is printable and at most 4096 bytes long. It contains the name, the token and
// the id of a lease. These are no secret, but everybody who has the ticket can acquire the lock.
//
// If Export returns an error and the lock's context has not ended, the lock is held as before. After any other error
// there is no ticket, and the lock is over. ErrLost and ErrExpired mean that it was over before. Otherwise the lock
// was released instead. If the database did not confirm that, the release goes on in the background, and the name is
// free at the latest when both the time of the ticket and the TTL have passed.
func (le *Lease) Export(ctx context.Context, valid time.Duration) (string, error) {
	id := make([]byte, 16) // of a lease on which the lock never was (I26)
	_, _ = rand.Read(id)   // never fails, says its documentation
	err := checkAhead(valid, lease.MinTTL)
	if err == nil {
		err = le.held.Export(ctx, id, valid)
	}
	if err == nil {
		return ticket{Version: ticketVersion, Name: []byte(le.Name()), Lease: id, Token: le.held.Token}.text(), nil
	}
	if op := (*sqllock.OpError)(nil); errors.As(err, &op) {
		return "", err
	}
	return "", le.failed("export", err)
}
