package leasetable_test

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/sqltest"
)

// proxy forwards the connections of a Locker to its server, and can lose or delay responses. When armed, it drops the
// next response after a request that contains a word and closes the connection, or passes the response on later. The
// server has received and executed the request.
type proxy struct {
	listener net.Listener
	conns    sync.WaitGroup

	mu      sync.Mutex
	server  string                // guarded by mu
	clients map[net.Conn]struct{} // guarded by mu: client connections
	word    string                // guarded by mu: "" if not armed
	spared  int                   // guarded by mu: how many requests with the word are skipped
	late    chan struct{}         // guarded by mu: nil, or closed when the response must be passed on
	asked   int                   // guarded by mu: number of requests
	lost    int                   // guarded by mu: number of dropped responses
	vain    int                   // guarded by mu: number of client connections without a listening server
}

// through returns a DSN that leads to db through a new proxy.
func through(t *testing.T, db *sqltest.Database) (*proxy, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: addressOf(db), clients: make(map[net.Conn]struct{})}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		p.conns.Wait()
	})
	return p, strings.Replace(db.DSN, addressOf(db), listener.Addr().String(), 1)
}

// newLockerThrough opens a Locker whose connections go through a new proxy.
func newLockerThrough(t *testing.T, db *sqltest.Database, opts ...leasetable.Option) (*proxy, *leasetable.Locker) {
	t.Helper()
	p, dsn := through(t, db)
	return p, newLocker(t, open(t, db.DriverName(), dsn), opts...)
}

// addressOf returns the address of db's server, as in its DSN.
func addressOf(db *sqltest.Database) string {
	_, rest, _ := strings.Cut(db.DSN, "127.0.0.1:")
	return "127.0.0.1:" + rest[:strings.IndexAny(rest, ")/")]
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.conns.Go(func() { p.serve(client) })
	}
}

func (p *proxy) serve(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	address := p.server
	p.clients[client] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.clients, client)
	}()
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", address)
	if err != nil {
		p.mu.Lock()
		p.vain++
		p.mu.Unlock()
		return
	}
	drop := make(chan chan struct{}, 1) // receives the late channel of a response
	p.conns.Go(func() {                 // forwards the responses
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case late := <-drop:
				if late == nil {
					p.mu.Lock()
					p.lost++
					p.mu.Unlock()
					return
				}
				<-late
			default:
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	defer server.Close()
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.asked++
		if p.word != "" && strings.Contains(string(buf[:n]), p.word) {
			if p.spared == 0 {
				p.word = ""
				drop <- p.late
			}
			p.spared = max(0, p.spared-1)
		}
		p.mu.Unlock()
		if _, err := server.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// spare makes the proxy skip this many requests that contain its word.
func (p *proxy) spare(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spared = requests
}

// loseAnswerTo arms the proxy to drop a response.
func (p *proxy) loseAnswerTo(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.late = word, nil
}

// delayAnswerTo arms the proxy to delay a response. The returned function passes it on.
func (p *proxy) delayAnswerTo(word string) (passOn func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	late := make(chan struct{})
	p.word, p.late = word, late
	return func() { close(late) }
}

// switchTo ends all connections; new ones lead to another server.
func (p *proxy) switchTo(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
	for client := range p.clients {
		_ = client.Close()
	}
}

// requests returns the number of separate sends to the server, which is the number of round trips.
func (p *proxy) requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func (p *proxy) answersLost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *proxy) inVain() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.vain
}

// onWire returns bytes as they appear in a request: unchanged, or in hex on MySQL.
func onWire(db *sqltest.Database, b []byte) string {
	if db.Engine == sqltest.EnginePostgres {
		return string(b)
	}
	return hex.EncodeToString(b)
}

func (p *proxy) isArmed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.word != ""
}
