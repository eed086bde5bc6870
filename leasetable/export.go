package leasetable

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/leasetable/internal/lease"
)

const exporting = "export"

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
	text, err := le.export(ctx, valid)
	if err != nil {
		text = ""
	}
	if op := (*sqllock.OpError)(nil); err != nil && !errors.As(err, &op) {
		err = &sqllock.OpError{Op: exporting, Name: le.Name(), Err: err}
	}
	return text, err
}

// export moves the lock to a lease with a new id, on which it never was (I26).
func (le *Lease) export(ctx context.Context, valid time.Duration) (string, error) {
	if err := checkAhead(valid, lease.MinTTL); err != nil {
		return "", err
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails, says its documentation
	text, err := ticket{Version: ticketVersion, Name: []byte(le.Name()), Lease: id, Token: le.held.Token}.text()
	if err != nil {
		return "", err
	}
	return text, le.held.Export(ctx, exporting, id, valid)
}
