package locktest

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/netfault"
)

// Long reports whether tests may take a long time, as in `make soak`.
func Long() bool { return os.Getenv("SOAK") != "" }

// roundTrips are the round-trip times of networks that locks must work on: within a continent, across an ocean, and by
// satellite or by phone.
var roundTrips = []time.Duration{25 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond}

// OnSlowNetworks runs a test on a network with each of the round-trip times, or only with the slowest unless Long.
func OnSlowNetworks(t *testing.T, server string, test func(t *testing.T, n *SlowNetwork)) {
	t.Helper()
	some := roundTrips
	if !Long() {
		some = some[len(some)-1:]
	}
	for _, roundTrip := range some {
		t.Run(fmt.Sprint("round trips of ", roundTrip), func(t *testing.T) {
			t.Parallel()
			test(t, NewSlowNetwork(t, server, roundTrip))
		})
	}
}

// SlowNetwork is a network to a server that is far away.
type SlowNetwork struct {
	*netfault.Network
	RoundTrip time.Duration
}

// NewSlowNetwork starts a SlowNetwork on a free port. It ends with the test.
func NewSlowNetwork(t *testing.T, server string, roundTrip time.Duration) *SlowNetwork {
	t.Helper()
	n := newNetwork(t, server)
	n.Delay(roundTrip)
	return &SlowNetwork{n, roundTrip}
}

// newNetwork starts a network to a server, whose requests are the pieces that clients send.
func newNetwork(t *testing.T, server string) *netfault.Network {
	t.Helper()
	return netfault.New(t, netfault.TCP(server), netfault.Bytes)
}

// SlowLocks tests Lockers far and other, whose server is far away. near is on the same server, without the delay.
func SlowLocks(t *testing.T, far, other, near Locker) {
	t.Helper()
	lock := MustTry(t, far, t.Name())
	MustBeHeld(t, near, t.Name())
	if _, err := TryAnswered(bounded(t), other, t.Name()); !errors.Is(err, sqllock.ErrHeld) {
		t.Errorf("a lock that is held: %v", err)
	}
	MustRelease(t, lock)
	lock = MustTry(t, near, t.Name())
	waiting := startWaiter(bounded(t), far, t.Name())
	waiting.mustBlock(t)
	MustRelease(t, lock)
	lock = waiting.mustGet(t)
	MustLive(t, lock)
	MustRelease(t, lock)
	MustRelease(t, MustTry(t, near, t.Name()))
}
