package locktest

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/event"
)

// Heartbeat checks that a heartbeat that the server answers with an error does not end a lock while the session is
// trusted, and that repeated failures do end it. After refuse the server answers all statements of Lockers with that
// DSN with an error, until relent.
func Heartbeat(t *testing.T, db Database, dsn string, refuse, relent func(t *testing.T)) {
	t.Helper()
	var told events
	l := open(t, db, Settings{DSN: dsn, TTL: endless, Hook: told.add})
	lock := MustTry(t, l, "it")
	refuse(t)
	Eventually(t, "a heartbeat was refused", func() bool {
		MustLive(t, lock)
		return told.last(event.RenewalFailed).Locks == 1
	})
	relent(t)
	told.forget()
	Eventually(t, "a heartbeat was answered", func() bool { return told.last(event.Renewed).Locks == 1 })
	MustLive(t, lock)
	MustRelease(t, lock)

	l = open(t, db, Settings{DSN: dsn, TTL: 3 * time.Second})
	lock = MustAcquire(t, l, "it") // a session that takes too long to open is opened again
	refuse(t)
	MustBeLost(t, lock)
	relent(t)
	MustRelease(t, MustAcquire(t, open(t, db, Settings{DSN: dsn, TTL: endless}), "it"))
}
