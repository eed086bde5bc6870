package locktest

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// WaitsOutlast tests that waits for session locks survive an outage of their server, whether it happens before or
// during the wait.
func WaitsOutlast(t *testing.T, machine Machine, db Database) {
	t.Helper()
	db.Pool().SetMaxIdleConns(0) // they end with the server, which the pool may notice in the next query only
	for _, end := range []func(){machine.Kill, machine.Stop} {
		lock := MustAcquire(t, open(t, db, Settings{}), "a")
		var told, toldLate events
		waiting := startWaiting(endingIn(t, 4*soon), t, db, open(t, db, Settings{Hook: told.add}), "a")
		end()
		late := startWaiter(endingIn(t, 4*soon), open(t, db, Settings{Hook: toldLate.add}), "b")
		MustBeLost(t, lock)
		Eventually(t, "both waits have met it", func() bool { return told.retried() && toldLate.retried() })
		if n := len(waiting.done) + len(late.done); n > 0 {
			t.Fatalf("%d of 2 waits ended with their server", n)
		}
		machine.Start()
		MustRelease(t, waiting.mustGet(t))
		MustRelease(t, late.mustGet(t))
	}
}

// OutlastsReadOnly tests that a wait goes on while its server is a standby or read-only, as in a failover, until the
// server is the primary.
func OutlastsReadOnly(t *testing.T, db Database, promote func()) {
	t.Helper()
	var told events
	l := open(t, db, Settings{Hook: told.add})
	if _, err := l.TryAcquire(bounded(t), "a"); !sqllock.IsRetryable(err) {
		t.Errorf("TryAcquire: %v; it should be retryable", err)
	} else {
		mustMatch(t, err, sqllock.ErrRefused, sqllock.ErrReadOnly)
	}
	waiting := startWaiter(endingIn(t, 4*soon), l, "a")
	Eventually(t, "the wait has met it", func() bool { return told.retried() })
	mustMatch(t, told.last("retrying").Err, sqllock.ErrRefused)
	if len(waiting.done) > 0 {
		t.Fatal("the wait has ended")
	}
	promote()
	MustRelease(t, waiting.mustGet(t))
}

// OutlastsProxy tests that waits go on while the proxy at address has lost its server, which lose brings about and find
// ends, and that a lock behind it is told so.
func OutlastsProxy(t *testing.T, db Database, address string, lose, find func()) {
	t.Helper()
	dsn := db.DSN(t, Access{Address: address})
	var told, toldLate events
	held := MustTry(t, open(t, db, Settings{}), "a")
	lock := MustTry(t, open(t, db, Settings{DSN: dsn, Heartbeat: time.Second}), "b")
	waiting := startWaiting(endingIn(t, 4*soon), t, db, open(t, db, Settings{DSN: dsn, Hook: told.add}), "a")
	lose()
	late := startWaiter(endingIn(t, 4*soon), open(t, db, Settings{DSN: dsn, Hook: toldLate.add}), "c")
	MustBeLost(t, lock)
	Eventually(t, "both waits have met it", func() bool { return told.retried() && toldLate.retried() })
	if _, err := open(t, db, Settings{DSN: dsn}).TryAcquire(bounded(t), "d"); !sqllock.IsRetryable(err) {
		t.Errorf("TryAcquire: %v; it should be retryable", err)
	}
	if n := len(waiting.done) + len(late.done); n > 0 {
		t.Fatalf("%d of 2 waits ended with the server of their proxy", n)
	}
	find()
	MustRelease(t, held)
	MustRelease(t, waiting.mustGet(t))
	MustRelease(t, late.mustGet(t))
}

// OutlastsPassword tests that a wait goes on while the server refuses the password of a Locker that it has admitted
// before. change sets another password, and back the one of the DSN.
func OutlastsPassword(t *testing.T, db Database, dsn string, change, back func()) {
	t.Helper()
	var told events
	l := open(t, db, Settings{DSN: dsn, Hook: told.add})
	lock := MustTry(t, l, "a")
	change()
	db.End(t, "a")
	MustBeLost(t, lock)
	waiting := startWaiter(endingIn(t, 4*soon), l, "a")
	Eventually(t, "the wait has met it", func() bool { return told.retried() })
	if _, err := open(t, db, Settings{DSN: dsn}).Acquire(bounded(t), "a"); err == nil || sqllock.IsRetryable(err) {
		t.Errorf("Acquire of a Locker that was never admitted: %v", err)
	}
	if len(waiting.done) > 0 {
		t.Fatalf("the wait has ended: %v", waiting.result(t).err)
	}
	back()
	MustRelease(t, waiting.mustGet(t))
}
