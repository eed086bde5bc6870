package locktest

import (
	"log/slog"
	"testing"
	"time"
)

// Heartbeat checks that a heartbeat that the server answers with an error ends no lock while the session
// is trusted, and does when that goes on. After refuse the server answers all statements of Lockers with
// that DSN so, until relent.
func Heartbeat(t *testing.T, db Database, dsn string, refuse, relent func(t *testing.T)) {
	t.Helper()
	var told events
	var log syncBuffer
	l := open(t, db, Settings{
		DSN: dsn, TTL: endless, Hook: told.add, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	lock := MustTry(t, l, "it")
	refuse(t)
	Eventually(t, "a heartbeat was refused", func() bool {
		MustLive(t, lock)
		return log.find("heartbeat is sent again") != ""
	})
	relent(t)
	told.forget()
	Eventually(t, "a heartbeat was answered", func() bool { return told.last("renewed").Locks == 1 })
	MustLive(t, lock)
	MustRelease(t, lock)

	l = open(t, db, Settings{DSN: dsn, TTL: 3 * time.Second})
	lock = MustTry(t, l, "it")
	refuse(t)
	MustBeLost(t, lock)
	relent(t)
	MustRelease(t, MustAcquire(t, l, "it"))
}
