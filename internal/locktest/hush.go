package locktest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
)

// hush stands between clients and their server. It can keep back the answer to a request and all that comes after it, and
// then pass it on, as the last thing that is heard if it is told so: from then on it is as a network that drops packets.
type hush struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	word   []byte        // guarded by mu: of the request whose answer is to be kept; nil if there is none
	seen   chan struct{} // guarded by mu: closed when the request was
	silent bool          // guarded by mu
	count  int           // guarded by mu: connections of clients
	conns  []net.Conn    // guarded by mu
	kept   *keptBack     // guarded by mu: nil if nothing is
	closed bool          // guarded by mu
}

// keptBack is what a client does not hear yet.
type keptBack struct {
	client net.Conn
	said   []byte
}

// newHush starts one on a free port, which ends with the test.
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

// keepAnswerTo has the answer to the next request that contains word kept back. The request reaches the server after seen
// is closed.
func (h *hush) keepAnswerTo(word string) (seen <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.word, h.seen = []byte(word), make(chan struct{})
	return h.seen
}

// passOn passes on what was kept back, and all that follows.
func (h *hush) passOn() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release()
}

// release is passOn for who has mu.
func (h *hush) release() {
	if h.kept != nil {
		_, _ = h.kept.client.Write(h.kept.said) // a client that has left is none to tell
		h.kept = nil
	}
}

// fallSilent passes on what was kept back, and nothing any more in either direction.
func (h *hush) fallSilent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.release()
	h.silent = true
}

// connections is how many clients have connected.
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

// forward gives pass what from says until one of them fails, and ends both connections.
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
