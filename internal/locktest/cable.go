package locktest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Cable forwards connections between clients and their server, and can cut them off. It then forwards nothing, not even
// the end of a connection, like a network that drops packets. Data sent in the meantime arrives when the cable heals.
type Cable struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	flow  chan struct{} // guarded by mu: closed while the cable forwards
	conns []net.Conn    // guarded by mu
}

// NewCable starts a cable on a free port of host. It ends with the test.
func NewCable(t *testing.T, host, server string) *Cable {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	r := &Cable{listener: listener, server: server, closed: make(chan struct{}), flow: make(chan struct{})}
	close(r.flow)
	r.running.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Address returns the address for clients.
func (r *Cable) Address() string { return r.listener.Addr().String() }

// Cut stops all forwarding.
func (r *Cable) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flow = make(chan struct{})
}

// Heal resumes forwarding.
func (r *Cable) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.flow)
}

func (r *Cable) close() {
	_ = r.listener.Close()
	close(r.closed)
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.running.Wait()
}

func (r *Cable) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.running.Go(func() { r.serve(client) })
	}
}

func (r *Cable) serve(client net.Conn) {
	if !r.keep(client) || !r.passes() {
		return
	}
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", r.server)
	if err != nil {
		_ = client.Close()
		return
	}
	if !r.keep(server) {
		return
	}
	r.running.Go(func() { r.forward(client, server) })
	r.forward(server, client)
}

// keep registers a connection, which is closed with the cable. It reports whether the cable is open.
func (r *Cable) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
		_ = c.Close()
		return false
	default:
		r.conns = append(r.conns, c)
		return true
	}
}

// passes waits while the cable is cut. It returns false if the cable is closed.
func (r *Cable) passes() bool {
	r.mu.Lock()
	flow := r.flow
	r.mu.Unlock()
	select {
	case <-flow:
		return true
	case <-r.closed:
		return false
	}
}

// forward forwards the data of one side, and finally its end.
func (r *Cable) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	for buf := make([]byte, 1<<15); ; {
		n, err := from.Read(buf)
		if !r.passes() || err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}
