// Package wire forwards TCP connections to a server, late or not at all.
package wire

import (
	"context"
	"net"
	"sync"
	"time"
)

// Wire is a network between clients and a server.
type Wire struct {
	listener net.Listener
	server   string
	delay    time.Duration
	closed   chan struct{}

	mu    sync.Mutex
	cut   bool       // guarded by mu
	conns []net.Conn // guarded by mu
}

// New starts a Wire to a server, on a free port of the loopback interface. Each way takes delay.
func New(ctx context.Context, server string, delay time.Duration) (*Wire, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Wire{listener: listener, server: server, delay: delay, closed: make(chan struct{})}
	go w.accept() //nolint:contextcheck // the network outlives its caller
	return w, nil
}

// Address returns the address for clients.
func (w *Wire) Address() string { return w.listener.Addr().String() }

// Cut ends all forwarding. No side is told, as when a cable is pulled.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
}

// Close ends the Wire and its connections.
func (w *Wire) Close() {
	_ = w.listener.Close()
	close(w.closed)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
}

func (w *Wire) isCut() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut
}

func (w *Wire) keep(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns = append(w.conns, c)
}

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.serve(client)
	}
}

func (w *Wire) serve(client net.Conn) {
	w.keep(client)
	if w.isCut() {
		return
	}
	w.wait(time.Now().Add(w.delay)) // a handshake takes a round trip
	w.wait(time.Now().Add(w.delay))
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", w.server)
	if err != nil {
		_ = client.Close()
		return
	}
	w.keep(server)
	go w.forward(client, server)
	w.forward(server, client)
}

// packet is what was read at once; nil data is the end of the connection.
type packet struct {
	data []byte
	due  time.Time
}

func (w *Wire) forward(to, from net.Conn) {
	packets := make(chan packet, 1024)
	go w.deliver(to, packets)
	defer close(packets)
	for {
		buf := make([]byte, 1<<14)
		n, err := from.Read(buf)
		due := time.Now().Add(w.delay)
		if n > 0 {
			packets <- packet{buf[:n], due}
		}
		if err != nil {
			packets <- packet{nil, due}
			return
		}
	}
}

// deliver writes packets when they are due. After a cut it drops them.
func (w *Wire) deliver(to net.Conn, packets <-chan packet) {
	for p := range packets {
		w.wait(p.due)
		switch {
		case w.isCut():
		case p.data == nil:
			_ = to.Close()
		default:
			_, _ = to.Write(p.data) // the reader sees the end of the connection
		}
	}
}

func (w *Wire) wait(until time.Time) {
	d := time.Until(until)
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.closed:
	}
}
