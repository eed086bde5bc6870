package locktest

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
)

func holderIsKnown(t *testing.T, s sessions) {
	l, other := open(t, s, Settings{Owner: "a,b:c"}), s.open(t)
	lock := MustTry(t, l, "a")
	_, err := other.TryAcquire(bounded(t), "a")
	var held *sqllock.HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	if h := held.Holder; h.Session != s.Holder(t, "a") || h.Address == "" {
		t.Errorf("the holder is %+v", h)
	}
	seen, isHeld, err := other.Inspect(bounded(t), "a")
	if err != nil || !isHeld || seen.Session != held.Holder.Session || seen.Address != held.Holder.Address {
		t.Errorf("Inspect = %+v, %t, %v; the failed try said %+v", seen, isHeld, err, held.Holder)
	}
	MustRelease(t, lock)
	if _, isHeld, err := other.Inspect(bounded(t), "a"); err != nil || isHeld {
		t.Errorf("Inspect of a free lock: %t, %v", isHeld, err)
	}
}

// Inspect tests Inspect on a server that shows its sessions and their locks to every user.
func Inspect(t *testing.T, db Database) {
	t.Helper()
	l := open(t, db, Settings{Owner: "accounts"})
	lock := MustTry(t, l, "a")
	ctx := bounded(t)
	waiters := []waiter{
		startWaiting(ctx, t, db, open(t, db, Settings{}), "a"),
		startWaiting(ctx, t, db, open(t, db, Settings{}), "a"),
	}
	var seen sqllock.Holder
	Eventually(t, "both waiters are seen", func() bool { // each waiter leaves the queue briefly from time to time
		var err error
		if seen, _, err = l.Inspect(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		return seen.Waiters == 2
	})
	if seen.Owner != "accounts" || seen.Session != db.Holder(t, "a") || seen.Address == "" || !strings.Contains(seen.String(), "2 waiting") {
		t.Errorf("the holder is %v", seen)
	}
	MustRelease(t, lock)
	for range waiters {
		select {
		case out := <-waiters[0].done:
			MustRelease(t, out.lock)
		case out := <-waiters[1].done:
			MustRelease(t, out.lock)
		}
	}
}

// I50.
func terminate(t *testing.T, s sessions) {
	var log syncBuffer
	holder, l := s.open(t), open(t, s, Settings{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	lock := MustTry(t, holder, "a")
	session := s.Holder(t, "a")
	ctx := bounded(t)
	waiting := startWaiting(ctx, t, s, s.open(t), "a")
	ended, held, err := l.Terminate(ctx, "a")
	if err != nil || !held || ended.Session != session {
		t.Fatalf("Terminate = %+v, %t, %v; want session %d", ended, held, err, session)
	}
	MustBeLost(t, lock)
	MustRelease(t, waiting.mustGet(t))
	MustRelease(t, MustTry(t, holder, "a"))

	if _, _, err := l.Terminate(ctx, "a"); err != nil {
		t.Error(err)
	}
	done, none := fmt.Sprintf(" session=%d", session), `lock=a outcome="not held"`
	if log.find("level=WARN", "termination of a lock's session", "lock=a outcome=done", done) == "" || log.find("level=INFO", none) == "" {
		t.Errorf("the log has\n%s", log.String())
	}
}

// I50.
func terminateFree(t *testing.T, s sessions) {
	lock := MustTry(t, s.open(t), "other")
	if ended, held, err := s.open(t).Terminate(bounded(t), "a"); err != nil || held || ended != (sqllock.Holder{}) {
		t.Errorf("Terminate = %+v, %t, %v", ended, held, err)
	}
	MustLive(t, lock)
	MustRelease(t, lock)
}

// I50.
func terminateItself(t *testing.T, s sessions) {
	l := s.open(t)
	lock := MustTry(t, l, "a")
	if _, held, err := l.Terminate(bounded(t), "a"); err == nil || held || !strings.Contains(err.Error(), "Release") {
		t.Errorf("Terminate = %t, %v", held, err)
	}
	MustLive(t, lock)
	MustRelease(t, lock)
}
