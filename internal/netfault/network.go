// Package netfault is a network between clients and a server whose faults a test chooses. It forwards TCP connections.
// Package sqltest has it for databases, under the same names.
package netfault

import (
	"context"
	"net"
	"sync"
	"time"
)

// TB is the part of a test that a Network needs.
type TB interface {
	Helper()
	Cleanup(f func())
	Logf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Server is what a Network leads to, in the form that [net.Dial] takes: a host and a port, or the path of a socket.
type Server struct{ Network, Address string }

// TCP returns the server at a host and a port.
func TCP(address string) Server { return Server{"tcp", address} }

// Network forwards connections between clients and a server. All its methods may be called by any goroutine.
type Network struct {
	tb      TB
	reads   Protocol
	running sync.WaitGroup
	closed  chan struct{} // closed when the test ends

	mu          sync.Mutex
	port        port          // guarded by mu, except for its address
	server      Server        // guarded by mu
	faults      faults        // guarded by mu
	changed     chan struct{} // guarded by mu: closed when faults or a line's silence change
	lines       lines         // guarded by mu: the open connections
	armed       []*Answer     // guarded by mu: those whose request has not come, in the order in which they were armed
	requests    int           // guarded by mu
	connections int           // guarded by mu
	unread      int           // guarded by mu: how many of them had a protocol that cannot be read
}

type faults struct {
	cut       bool
	roundTrip time.Duration
	perSecond int // bytes; 0 is no limit
}

// New starts a network to a server, on a free port of 127.0.0.1. It ends with the test.
func New(tb TB, server Server, reads Protocol) *Network {
	tb.Helper()
	return NewOn(tb, "127.0.0.1", server, reads)
}

// NewOn starts a network on a free port of another address of this machine.
func NewOn(tb TB, host string, server Server, reads Protocol) *Network {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		tb.Fatalf("a network to a database: %v", err)
	}
	n := &Network{
		tb: tb, reads: reads, closed: make(chan struct{}), port: port{address: listener.Addr().String(), listener: listener},
		server: server, changed: make(chan struct{}), lines: make(lines),
	}
	n.running.Go(func() { n.accept(listener) })
	tb.Cleanup(n.close)
	return n
}

// Address returns the host and the port for clients.
func (n *Network) Address() string { return n.port.address }

// Requests returns how many times clients have sent something to the server and so, for most drivers, how many round trips
// there were.
func (n *Network) Requests() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests
}

// Connections returns how many connections clients have opened.
func (n *Network) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.connections
}

// Cut forwards nothing more, not even the end of a connection, until Heal. What is sent meanwhile arrives then.
func (n *Network) Cut() {
	n.change(func(f *faults) { f.cut = true })
}

// Delay makes each round trip last longer, half of it in each direction. It also delays what opens a connection.
func (n *Network) Delay(roundTrip time.Duration) {
	n.change(func(f *faults) { f.roundTrip = roundTrip })
}

// Throttle limits each connection to some bytes per second in each direction. Zero is no limit.
func (n *Network) Throttle(bytesPerSecond int) {
	n.change(func(f *faults) { f.perSecond = max(0, bytesPerSecond) })
}

func (n *Network) change(change func(*faults)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.faults)
	n.tell()
}

// tell wakes what waits for a change. The caller holds mu.
func (n *Network) tell() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// Disconnect ends all connections, and tells both sides. New ones go through.
func (n *Network) Disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines.end()
}

// SwitchTo ends all connections, and leads new ones to another server.
func (n *Network) SwitchTo(server Server) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server = server
	n.lines.end()
}

// Refuse ends all connections and refuses new ones until Heal.
func (n *Network) Refuse() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.port.refuse()
	n.lines.end()
}

// Forget loses the connections that are open: they carry nothing more, and neither side is told. New ones go through.
func (n *Network) Forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.lines {
		l.silent = true
	}
	n.tell()
}

// HalfOpen ends the clients' side of the connections that are open, and keeps the server's side open until Heal. New ones
// go through.
func (n *Network) HalfOpen() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for l := range n.lines {
		l.silent = true
		_ = l.client.Close()
	}
	n.tell()
}

// Heal ends all faults, except those of answers. Connections that were lost by Forget or HalfOpen end.
func (n *Network) Heal() {
	n.tb.Helper()
	if err := n.heal(); err != nil {
		n.tb.Fatalf("a network to a database: %v", err)
	}
}

func (n *Network) heal() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults = faults{}
	for l := range n.lines {
		if l.silent {
			l.end()
		}
	}
	n.tell()
	if n.port.listener != nil {
		return nil
	}
	if err := n.port.listenAgain(); err != nil {
		return err
	}
	listener := n.port.listener
	n.running.Go(func() { n.accept(listener) })
	return nil
}

func (n *Network) close() {
	n.tb.Helper()
	n.mu.Lock()
	n.port.close()
	close(n.closed)
	n.lines.end()
	n.mu.Unlock()
	n.running.Wait()
	if vain, unread := len(n.armed), n.unread; vain > 0 && unread > 0 {
		n.tb.Logf("a network to a database: %d answers were to be held or dropped, but no request for them was seen, and what %d connections carry "+
			"is encrypted or compressed: open the database without TLS", vain, unread)
	}
}

func (n *Network) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		l := &line{network: n, client: client, ended: make(chan struct{}), wire: n.reads()}
		n.running.Go(func() { l.serve(listener) })
	}
}
