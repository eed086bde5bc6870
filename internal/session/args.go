package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/internal/option"
	"github.com/sqllock/sqllock/internal/refusal"
	"github.com/sqllock/sqllock/internal/waiting"
)

// CheckArgs validates the arguments of op for a session lock of the backend whose options are a C. It returns that
// backend's options and the common ones.
func CheckArgs[C any](op, name string, opts []sqllock.Option) (c C, o option.Options, err error) {
	o, c, foreign := option.Read[C](opts)
	err = errors.Join(lockname.Check(name), waiting.Check(o.Wait))
	switch {
	case err != nil:
	case o.TTL != 0:
		err = fmt.Errorf("%w: sqllock.WithTTL; the lock ends with its session or transaction. A Locker has WithSessionTTL", sqllock.ErrUnsupported)
	case foreign != "":
		err = fmt.Errorf("%w: %s, which is not for a session lock of this database", sqllock.ErrUnsupported, foreign)
	}
	if err != nil {
		return c, o, &sqllock.OpError{Op: op, Name: name, Err: err}
	}
	return c, o, nil
}

// DefaultOwner returns the name that a Locker gives itself unless WithOwner sets another: program@host:pid.
func DefaultOwner() string {
	host, _ := os.Hostname() // the name is for people; without a host it still has the rest
	return fmt.Sprintf("%s@%s:%d", filepath.Base(os.Args[0]), host, os.Getpid())
}

// UnavailableError is the error when a connection could not be opened. The drivers' texts name the host and the user,
// never the password.
type UnavailableError struct {
	Err       error
	Permanent bool // the server answered, and does not admit this client: a wrong password, say
}

func (e *UnavailableError) Error() string { return "cannot connect: " + e.Err.Error() }

// Unwrap returns the driver's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Retryable answers sqllock.IsRetryable. An untrusted certificate does not become trusted by waiting.
func (e *UnavailableError) Retryable() bool { return !e.Permanent && !connector.Untrusted(e.Err) }

// PassingRefusalError refuses a standby or read-only server, a state that may pass: during a failover a standby becomes
// the primary, or a proxy leads to the primary. It matches sqllock.ErrRefused and sqllock.ErrReadOnly.
type PassingRefusalError struct{ Refused *refusal.Error }

func (e *PassingRefusalError) Error() string { return e.Refused.Error() }

// Unwrap returns the *refusal.Error.
func (e *PassingRefusalError) Unwrap() error { return e.Refused }

// Is reports whether target is ErrReadOnly, which leases return on such a server.
func (e *PassingRefusalError) Is(target error) bool { return target == sqllock.ErrReadOnly }

// Retryable answers sqllock.IsRetryable.
func (e *PassingRefusalError) Retryable() bool { return true }

// LastingRefusalError ends a session on a server that refuses to lock. Another session would not help. It matches
// sqllock.ErrRefused.
type LastingRefusalError struct{ Refused *refusal.Error }

func (e *LastingRefusalError) Error() string { return e.Refused.Error() }

// Unwrap returns the *refusal.Error.
func (e *LastingRefusalError) Unwrap() error { return e.Refused }
