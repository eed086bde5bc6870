package locktest

import (
	"fmt"
	"testing"

	"github.com/sqllock/sqllock"
)

func shareOneConnection(t *testing.T, s sessions) {
	l := s.open(t)
	if n := s.Sessions(t); n != 0 {
		t.Fatalf("%d connections before the first lock", n)
	}
	var locks []sqllock.Lock
	for i := range 50 {
		locks = append(locks, MustTry(t, l, fmt.Sprint("lock ", i)))
	}
	if n := s.Sessions(t); n != 1 {
		t.Errorf("%d connections for 50 locks that were free", n)
	}
	for _, lock := range locks {
		MustRelease(t, lock)
	}
}

// I41.
func waitHasConnection(t *testing.T, s sessions) {
	holder, l := s.open(t), s.open(t)
	lock, other := MustTry(t, holder, "a"), MustTry(t, l, "other")
	kept := MustTry(t, holder, "kept") // keeps its connection
	ctx := bounded(t)
	waiting := startWaiting(ctx, t, s, l, "a")
	if n := s.Sessions(t); n != 3 {
		t.Errorf("%d connections; want one for the holder's locks, one for the waiter's, one for its wait", n)
	}
	inLine := startWaiter(ctx, l, "a")
	MustRelease(t, lock)
	for range 2 { // in either order
		var out outcome
		select {
		case out = <-waiting.done:
		case out = <-inLine.done:
		}
		if out.err != nil {
			t.Fatal(out.err)
		}
		MustRelease(t, out.lock)
	}
	Eventually(t, "the wait's connection is closed", func() bool { return s.Sessions(t) == 2 })
	MustLive(t, other)
	MustRelease(t, other)
	MustRelease(t, kept)
}

// I41.
func poolOfOne(t *testing.T, s sessions) {
	small := SmallPool(t, s.server.Driver, s.DSN(t, Access{}))
	l := open(t, s, Settings{DB: small})
	lock, own := MustTry(t, s.open(t), "a"), MustTry(t, l, "own")
	ctx := bounded(t)
	waiting := startWaiting(ctx, t, s, l, "a")
	for range 10 {
		var one int
		if err := small.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
			t.Fatal(err)
		}
	}
	MustRelease(t, own) // the wait does not block a release either
	MustRelease(t, lock)
	MustRelease(t, waiting.mustGet(t))
	if n := small.Stats().OpenConnections; n > 1 {
		t.Errorf("the pool has %d connections", n)
	}
	if err := small.PingContext(ctx); err != nil {
		t.Errorf("the pool was closed: %v", err)
	}
}

func anotherDatabase(t *testing.T, s sessions) {
	one, two := s.open(t), open(t, s.server.Open(t), Settings{})
	first := MustTry(t, one, "a")
	MustBeHeld(t, one, "a")
	MustRelease(t, MustTry(t, two, "a"))
	MustRelease(t, first)
}
