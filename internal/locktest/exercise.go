package locktest

import (
	"testing"

	"github.com/sqllock/sqllock"
)

// Locker is a backend's Locker.
type Locker interface {
	sqllock.Locker
	Close() error
}

// Options is what the suite needs from a backend, besides its Lockers. Each field is optional; tests that need it are
// skipped without it.
type Options struct {
	// Lose takes the lock called name away from its holder without the holder's help: it ends the session, or deletes
	// the row.
	Lose func(t *testing.T, name string)

	// Waiting counts the waiters in the database for the lock called name, on any connection. It is called while
	// nothing else uses the database.
	Waiting func(t *testing.T, name string) int

	// Kind is the kind of the Locker in its events: "session" or "lease".
	Kind string

	// Unsupported is an option that this kind of lock does not support.
	Unsupported sqllock.Option
}

// Exercise tests a backend. Each call of newLocker opens another Locker on the same database, like another process; the
// suite closes it. Sessions and leases must last longer than the 1 min that the suite waits: otherwise a lock that a
// Locker leaves held would become free unnoticed.
func Exercise(t *testing.T, newLocker func(t *testing.T) Locker, opts Options) {
	t.Helper()
	s := suite{newLocker: newLocker, opts: opts}
	t.Run("a wait that is cancelled as the lock is granted leaves it free or held by the caller", func(t *testing.T) {
		if s.opts.Waiting == nil { // it sees the waiters of all tests
			t.Parallel()
		}
		cancelTests{s}.cancelledAtTheGrant(t)
	})

	for _, subject := range []interface{ tests() []test }{
		exclusionTests{s}, nameTests{s}, waitTests{s}, cancelTests{s}, lifetimeTests{s}, allTests{s}, doTests{s}, closeTests{s},
	} {
		for _, test := range subject.tests() {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t)
			})
		}
	}
}

type test struct {
	name string
	run  func(t *testing.T)
}

// suite is what the tests of every subject have.
type suite struct {
	newLocker func(t *testing.T) Locker
	opts      Options
}

// locker opens a Locker, and closes it at the end of the test.
func (s suite) locker(t *testing.T) Locker {
	t.Helper()
	l := s.newLocker(t)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

func (s suite) twoLockers(t *testing.T) (a, b Locker) {
	t.Helper()
	return s.locker(t), s.locker(t)
}

// lose takes a lock away, or skips the test if the backend cannot do that.
func (s suite) lose(t *testing.T, name string) {
	t.Helper()
	if s.opts.Lose == nil {
		t.Skip("this backend has no way to lose a lock")
	}
	s.opts.Lose(t, name)
}
