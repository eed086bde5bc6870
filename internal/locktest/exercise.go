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
	// It runs alone, because Waiting must see no other waiter.
	t.Run("a wait that is cancelled as the lock is granted leaves it free or held by the caller", s.cancelledAtTheGrant)

	for _, test := range []struct {
		name string
		run  func(t *testing.T)
	}{
		{"of two Lockers one holds a name", s.oneHolder},
		{"a Locker does not re-enter its own lock", s.noReentry},
		{"different names do not exclude each other", s.differentNames},
		{"every name is another lock whatever its bytes", s.hostileNames},
		{"names that are too long or empty are ErrName", s.invalidNames},
		{"an option that means nothing is ErrUnsupported", s.unsupported},
		{"a Locker holds hundreds of locks at once", s.manyNames},

		{"a waiter of another Locker gets the lock when it is released", s.wakeOther},
		{"a waiter of the same Locker gets the lock when it is released", s.wakeLocal},
		{"waiters of one Locker are served in the order they came", s.localOrder},
		{"waiters of many Lockers all get the lock", s.everybodyServed},

		{"a dead context acquires nothing", s.deadContext},
		{"a wait ends with its context and holds nothing", s.cancelledWait},
		{"a wait in line behind its own process ends with its context", s.cancelledInLine},
		{"a wait ends at its deadline", s.waitDeadline},

		{"releasing twice returns the same", s.releaseTwice},
		{"releasing with a dead context works", s.releaseDeadContext},
		{"concurrent releases return the same", s.releaseConcurrently},
		{"the lock context ends before another can hold the lock", s.endsBeforeNext},
		{"the lock context has the values but not the end of the acquiring context", s.contextValues},
		{"a released name can be taken again by the same Locker", s.takeAgain},

		{"a lost lock ends its context with ErrLost and so does Release", s.lost},
		{"after a loss the name can be acquired anew", s.acquireAfterLoss},

		{"AcquireAll takes every name once and in order", s.allNames},
		{"AcquireAll takes all or nothing", s.allOrNothing},
		{"AcquireAll of overlapping names does not deadlock", s.allOverlapping},
		{"AcquireAll ends when one of its locks is lost", s.allLost},
		{"AcquireAll of no names is an error", s.allOfNone},

		{"Do holds the lock while its function runs", s.doHolds},
		{"Do returns what its function returns", s.doError},
		{"Do releases when its function panics", s.doPanic},
		{"Do cancels its function when the lock is lost", s.doLost},
		{"Do cancels its function with the cause of its context", s.doCancelled},
		{"Do does not run its function without the lock", s.doHeld},
		{"DoWith gives the function the lock", s.doWith},
		{"TryDo runs what is free, and says whether it did", s.tryDo},
		{"WithWait bounds the waiting alone", s.boundedWait},

		{"a closed Locker returns ErrClosed", s.useAfterClose},
		{"closing ends the locks still held and frees their names", s.closeWhileHeld},
		{"closing ends a wait with ErrClosed", s.closeWhileWaiting},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t)
		})
	}
}

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
