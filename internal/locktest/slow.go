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

// Long reports whether tests may take their time, as they do for `make soak`.
func Long() bool { return os.Getenv("SOAK") != "" }

// roundTrips are those of the networks that locks have to work on: of a continent, of an ocean, and by satellite or by phone.
var roundTrips = []time.Duration{25 * time.Millisecond, 150 * time.Millisecond, 400 * time.Millisecond}

// OnSlowNetworks runs a test on a network with each of the round trips. Where tests may not take long, it is the slowest.
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

// SlowNetwork stands between clients and their server, and passes on everything later, in both directions.
type SlowNetwork struct {
	RoundTrip time.Duration

	listener net.Listener
	server   string
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{} // guarded by mu
}

// NewSlowNetwork starts one on a free port, which ends with the test.
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

// Address is where clients connect to.
func (n *SlowNetwork) Address() string { return n.listener.Addr().String() }

// EndAll ends all connections, as a server does that restarts.
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

// rest waits, and reports whether the network is still there.
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
	if !n.rest(n.RoundTrip) { // TCP's own
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

// keep has a connection ended with all others, until the function is called that it returns, which ends it.
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

// forward passes on what one side says, half a round trip later, and at last that it has ended.
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
			_, _ = to.Write(p.data) // it may have ended
		}
	}
	_ = to.Close()
}

// SlowLocks tests what Lockers do whose server is far away. Those who are near are on the same server.
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
