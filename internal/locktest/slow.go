package locktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
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

// SlowNetwork forwards connections between clients and their server with a delay in both directions.
type SlowNetwork struct {
	RoundTrip time.Duration

	listener net.Listener
	server   string
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
}

// NewSlowNetwork starts a SlowNetwork on a free port. It ends with the test.
func NewSlowNetwork(t *testing.T, server string, roundTrip time.Duration) *SlowNetwork {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &SlowNetwork{
		RoundTrip: roundTrip, listener: listener, server: server, closed: make(chan struct{}), conns: make(map[net.Conn]struct{}),
	}
	n.running.Go(n.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		close(n.closed)
		n.EndAll()
		n.running.Wait()
	})
	return n
}

// Address returns the address for clients.
func (n *SlowNetwork) Address() string { return n.listener.Addr().String() }

// EndAll closes all connections, like a server that restarts.
func (n *SlowNetwork) EndAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		_ = c.Close()
	}
}

func (n *SlowNetwork) accept() {
	for {
		client, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.running.Go(func() { n.serve(client) })
	}
}

// rest waits. It returns false if the network is closed.
func (n *SlowNetwork) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-n.closed:
		return false
	}
}

func (n *SlowNetwork) serve(client net.Conn) {
	defer n.keep(client)()
	if !n.rest(n.RoundTrip) { // the round trip of TCP's handshake
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", n.server)
	if err != nil {
		return
	}
	defer n.keep(server)()
	var both sync.WaitGroup
	both.Go(func() { n.forward(client, server) })
	n.forward(server, client)
	both.Wait()
}

// keep registers a connection, so that EndAll closes it. The returned function unregisters and closes it.
func (n *SlowNetwork) keep(c net.Conn) (end func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[c] = struct{}{}
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.conns, c)
		_ = c.Close()
	}
}

// forward forwards the data of one side half a round trip later, and finally its end.
func (n *SlowNetwork) forward(to, from net.Conn) {
	type packet struct {
		at   time.Time
		data []byte
	}
	packets := make(chan packet, 1000)
	n.running.Go(func() {
		defer close(packets)
		for {
			buf := make([]byte, 1<<15)
			read, err := from.Read(buf)
			if err != nil {
				return
			}
			packets <- packet{time.Now().Add(n.RoundTrip / 2), buf[:read]}
		}
	})
	for p := range packets {
		if n.rest(time.Until(p.at)) {
			_, _ = to.Write(p.data) // the connection may have ended
		}
	}
	_ = to.Close()
}

// SlowLocks tests Lockers far and other, whose server is far away. near is on the same server, without the delay.
func SlowLocks(t *testing.T, far, other, near Locker) {
	t.Helper()
	lock := MustTry(t, far, t.Name())
	MustBeHeld(t, near, t.Name())
	if _, err := other.TryAcquire(bounded(t), t.Name()); !errors.Is(err, sqllock.ErrHeld) {
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
