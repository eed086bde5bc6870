package sqllock

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Errors that every backend returns; match them with errors.Is.
var (
	// ErrHeld says that somebody else holds the lock. errors.As finds a *HeldError in the error.
	ErrHeld = errors.New("lock is held")

	// ErrLost says that the lock ended before it was released: its connection or its row is gone, and somebody else may
	// hold the lock now. A session lock whose connection was silent for too long is lost, too.
	ErrLost = errors.New("lock was lost")

	// ErrExpired says that a lease outlived its deadline without being renewed. If Release returns it, nobody had taken
	// the lock meanwhile, unless it says that the release was not confirmed. Session locks and transaction locks never
	// return it.
	ErrExpired = errors.New("lock expired")

	// ErrReleased is the cause of a lock's context after Release.
	ErrReleased = errors.New("lock was released")

	// ErrClosed says that the Locker was closed. It is also the cause of the context of a
	// lock that was still held when its Locker was closed.
	ErrClosed = errors.New("locker is closed")

	// ErrRefused says that a session or transaction lock would not be safe on this server, or that a lease would not be
	// safe behind this proxy or with a trigger on its tables. The error's text says what was found and what to do instead.
	ErrRefused = errors.New("refused")

	// ErrSchema says that the lease tables are missing or of another version. The error's text has the command that
	// repairs them, or says that the program has to be upgraded or a column to be altered. Only leases return it.
	ErrSchema = errors.New("lease tables are missing or out of date")

	// ErrReadOnly says that the server or the session cannot write, as a standby. Any kind of lock returns it. For a
	// session lock and a transaction lock the error matches ErrRefused, too. With rejectReadOnly=true in the DSN,
	// go-sql-driver/mysql hides it from leases: acquiring one then fails with a broken connection.
	ErrReadOnly = errors.New("database is read-only")

	// ErrName says that a name is not a valid lock name. A name is 1 to 1024 bytes, any bytes, compared byte by byte on
	// every backend, without case folding, trimming or Unicode normalisation.
	ErrName = errors.New("invalid lock name")

	// ErrLimit says that the Locker or its server has no lock or connection left. Acquire waits for a connection of the
	// server; see IsRetryable for the rest.
	ErrLimit = errors.New("limit reached")

	// ErrUnsupported says that an option or a method does not apply to this kind of lock, that this server does not show
	// the requested information, or that locks cannot use the driver's connections. The error's text says what it is about.
	ErrUnsupported = errors.New("not supported")
)

// OpError adds to Err the operation that failed and the name of the lock.
type OpError struct {
	Op   string // "acquire", "release", …
	Name string // the lock's name
	Err  error
}

// Error quotes the name, so that every byte is visible, and shortens a long one.
func (e *OpError) Error() string {
	if e.Name == "" && !errors.Is(e.Err, ErrName) {
		return fmt.Sprintf("sqllock: %s: %v", e.Op, e.Err)
	}
	return fmt.Sprintf("sqllock: %s %s: %v", e.Op, quote(e.Name), e.Err)
}

// Unwrap returns Err.
func (e *OpError) Unwrap() error { return e.Err }

// HeldError is the error when somebody else holds the lock; it matches ErrHeld.
//
// Holder may be empty: after a wait for a session lock, with pg.LockTx and pg.TryLockTx, if a goroutine of the same Locker
// that waits was ahead, if the name of a lease is kept for its minimum hold or left to others, and if the server did not
// tell.
type HeldError struct {
	Name   string
	Holder Holder // what is known about the holder, at the time of the attempt
}

// Error includes what is known about the holder.
func (e *HeldError) Error() string {
	msg := "lock is held"
	if by := e.Holder.String(); by != "" {
		msg += " by " + by
	}
	return msg
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Holder describes the holder of a lock. Unknown fields are zero.
type Holder struct {
	Owner   string        // the name that the holder gives itself
	Host    string        // the holder's host name (leases)
	PID     int           // the holder's process id on Host (leases), or the id of this process (session locks that it holds itself)
	Session int64         // PostgreSQL backend pid or MySQL connection id (session locks)
	Address string        // the client's address, as the server sees it (session locks)
	Token   int64         // the highest fencing token given for the name (leases); that of the holder may be lower
	Since   time.Time     // when the lock was taken; for a session lock, when its session began
	Until   time.Time     // when the lease expires unless renewed, by the database's clock (leases)
	TTL     time.Duration // how long the lease outlasts a renewal (leases)
	Waiters int           // the number of waiters in the server's queue for the lock, if the server shows it (session locks; see package pg)

	Metadata string // data that the holder attached, any bytes (leases)
}

// String puts the known fields on one line, without the metadata, which can be any bytes. It quotes a text of others that could
// be taken for several fields, as one with a comma, or would break the line.
func (h Holder) String() string {
	var parts []string
	add := func(known bool, format string, args ...any) {
		if known {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(h.Owner != "", "%s", unambiguous(h.Owner))
	add(h.Host != "", "on %s", unambiguous(h.Host))
	add(h.PID != 0, "pid %d", h.PID)
	add(h.Session != 0, "session %d", h.Session)
	add(h.Address != "", "from %s", unambiguous(h.Address))
	add(h.Token != 0, "token %d", h.Token)
	add(!h.Since.IsZero(), "since %s", h.Since.Format(time.RFC3339))
	add(!h.Until.IsZero(), "until %s", h.Until.Format(time.RFC3339))
	add(h.Waiters != 0, "%d waiting", h.Waiters)
	return strings.Join(parts, ", ")
}

// IsRetryable reports whether the same call may succeed later with nothing changed: the lock is held, the connection
// broke or could not be opened, the server is busy, restarting, full (of connections, or of locks in PostgreSQL; its
// disk, for a lease), or a standby or read-only, as during a failover.
// It is false for a wrong password, a missing database or table, missing privileges, and a closed Locker. After
// a Locker was admitted once, a refused password counts as one that is being replaced.
//
// Acquire continues to wait after such an error while its context lives, with two exceptions, both ErrLimit of a session
// lock: the Locker's connections hold as many locks as they may, or the lock table of PostgreSQL is full (53200). Then
// release a lock, or call again later.
func IsRetryable(err error) bool {
	if errors.Is(err, ErrClosed) {
		return false
	}
	if errors.Is(err, ErrHeld) {
		return true
	}
	var r interface{ Retryable() bool }
	return errors.As(err, &r) && r.Retryable()
}
