package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sqllock/sqllock"
)

// CheckArgs validates what op was given for a session lock, and returns what the options of the
// backend's own package say.
func CheckArgs(op, name string, opts []sqllock.Option) (backend any, err error) {
	var o sqllock.Options
	for _, opt := range opts {
		opt(&o)
	}
	err = sqllock.CheckName(name)
	if err == nil && o.TTL != 0 {
		err = fmt.Errorf("%w: a session lock has no TTL of its own; set WithSessionTTL on its Locker", sqllock.ErrUnsupported)
	}
	if err != nil {
		return nil, &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return o.Backend, nil
}

// PackageOf is the name of the package whose option a backend is from.
func PackageOf(backend any) string {
	name, _, _ := strings.Cut(fmt.Sprintf("%T", backend), ".")
	return name
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
