package session

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sqllock/sqllock"
)

// CheckArgs validates what an acquisition of a session lock was given.
func CheckArgs(name string, opts []sqllock.Option) error {
	if err := sqllock.CheckName(name); err != nil {
		return failed(name, err)
	}
	var o sqllock.Options
	for _, opt := range opts {
		opt(&o)
	}
	if o.TTL != 0 {
		return failed(name, fmt.Errorf("%w: a session lock has no TTL of its own; set WithSessionTTL on its Locker",
			sqllock.ErrUnsupported))
	}
	return nil
}

// DefaultOwner is what a Locker calls itself unless told otherwise: program@host:pid.
func DefaultOwner() string {
	host, _ := os.Hostname() // a name for people; without a host it still has the rest
	return fmt.Sprintf("%s@%s:%d", filepath.Base(os.Args[0]), host, os.Getpid())
}

// UnavailableError is the error of a connection that could not be opened. The drivers' texts
// name the host and the user, never the password.
type UnavailableError struct {
	Err       error
	Permanent bool // the server answered, and will not let this client in: a wrong password, say
}

func (e *UnavailableError) Error() string { return "cannot connect: " + e.Err.Error() }

// Unwrap returns the driver's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Retryable implements the question of sqllock.IsRetryable.
func (e *UnavailableError) Retryable() bool { return !e.Permanent }
