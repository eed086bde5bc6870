package locktest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Cable stands between clients and their server and can cut them off from each other: it then
// passes on nothing, not even the end of a connection, as a network does that drops packets.
// What was sent in the meantime arrives when it heals.
type Cable struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup
	closed   chan struct{}

	mu    sync.Mutex
	flow  chan struct{} // guarded by mu: closed while things are passed on
	conns []net.Conn    // guarded by mu
}

// NewCable starts a cable on a free port of host, which ends with the test.
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

// Address is where clients connect to.
func (r *Cable) Address() string { return r.listener.Addr().String() }

// Cut stops everything.
func (r *Cable) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flow = make(chan struct{})
}

// Heal lets everything go on.
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

// keep has a connection closed with the cable.
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

// passes waits while the cable is cut, and reports whether it goes on.
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

// forward passes on what one side says, and at last that it has ended.
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
