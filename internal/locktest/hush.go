package locktest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
)

// hush forwards connections between clients and their server. It can hold back the response to a request and everything
// after it, and pass it on later. If fallSilent passes it on, it is the last data that arrives: from then on hush acts
// like a network that drops packets.
type hush struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	word   []byte        // guarded by mu: a part of the request whose response is held back; nil if there is none
	seen   chan struct{} // guarded by mu: closed when the request arrives
	silent bool          // guarded by mu
	count  int           // guarded by mu: the number of client connections
	conns  []net.Conn    // guarded by mu
	kept   *keptBack     // guarded by mu: nil if nothing is held back
	closed bool          // guarded by mu
}

// keptBack is data that a client has not received yet.
type keptBack struct {
	client net.Conn
	said   []byte
}

// newHush starts a hush on a free port. It ends with the test.
func newHush(t *testing.T, server string) *hush {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := &hush{listener: listener, server: server}
	h.running.Go(h.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		h.mu.Lock()
		h.closed = true
		for _, c := range h.conns {
			_ = c.Close()
		}
		h.mu.Unlock()
		h.running.Wait()
	})
	return h
}

func (h *hush) address() string { return h.listener.Addr().String() }

// keepAnswerTo holds back the response to the next request that contains word. seen is closed before the request
// reaches the server.
func (h *hush) keepAnswerTo(word string) (seen <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.word, h.seen = []byte(word), make(chan struct{})
	return h.seen
}

// passOn passes on the data held back, and forwards everything after it.
func (h *hush) passOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release()
}

// release does the work of passOn. The caller must hold mu.
func (h *hush) release() {
	if h.kept != nil {
		_, _ = h.kept.client.Write(h.kept.said) // the client may have gone
		h.kept = nil
	}
}

// fallSilent passes on the data held back. From then on nothing is forwarded in either direction.
func (h *hush) fallSilent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release()
	h.silent = true
}

// connections returns how many clients have connected.
func (h *hush) connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func (h *hush) accept() {
	for {
		client, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.running.Go(func() { h.serve(client) })
	}
}

func (h *hush) serve(client net.Conn) {
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", h.server)
	if err != nil {
		_ = client.Close()
		return
	}
	h.mu.Lock()
	h.count++
	h.conns = append(h.conns, client, server)
	if h.closed {
		_, _ = client.Close(), server.Close()
	}
	h.mu.Unlock()
	h.running.Go(func() { forward(server, client, func(said []byte) error { return h.answer(client, said) }) })
	forward(client, server, func(said []byte) error { return h.request(client, server, said) })
}

// forward passes the data that from sends to pass, until one of them fails, and then closes both connections.
func forward(from, to net.Conn, pass func([]byte) error) {
	defer to.Close()
	defer from.Close()
	for buf := make([]byte, 1<<15); ; {
		n, err := from.Read(buf)
		if err != nil || pass(buf[:n]) != nil {
			return
		}
	}
}

func (h *hush) request(client, server net.Conn, said []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.silent {
		return nil
	}
	if h.word != nil && bytes.Contains(said, h.word) {
		h.word, h.kept = nil, &keptBack{client: client}
		close(h.seen)
	}
	_, err := server.Write(said)
	return err
}

func (h *hush) answer(client net.Conn, said []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.silent:
		return nil
	case h.kept != nil && h.kept.client == client:
		h.kept.said = append(h.kept.said, said...)
		return nil
	}
	_, err := client.Write(said)
	return err
}
