package locktest

import (
	"log/slog"
	"testing"

	"github.com/sqllock/sqllock"
)

// Heartbeat checks that a heartbeat that the server answers with an error ends no lock while the session
// is trusted, and does when that goes on. After refuse the server answers all statements of the
// Locker so, until relent.
func Heartbeat(
	t *testing.T, newLocker func(t *testing.T, hook func(sqllock.Event), logger *slog.Logger) Locker, refuse, relent func(t *testing.T),
) {
	t.Helper()
	var told events
	var log syncBuffer
	l := newLocker(t, told.add, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	lock := mustTry(t, l, "it")
	refuse(t)
	eventually(t, "a heartbeat was refused", func() bool {
		mustLive(t, lock)
		return log.find("heartbeat is sent again") != ""
	})
	relent(t)
	told.forget()
	eventually(t, "a heartbeat was answered", func() bool { return told.last("renewed").Locks == 1 })
	mustLive(t, lock)
	mustRelease(t, lock)

	lock = mustTry(t, l, "it")
	refuse(t)
	select {
	case <-lock.Context().Done():
	case <-bounded(t).Done():
		t.Fatal("the loss was not told")
	}
	mustMatch(t, lock.Release(t.Context()), sqllock.ErrLost)
	relent(t)
	mustRelease(t, mustAcquire(t, l, "it"))
}
