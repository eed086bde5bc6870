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

// proxy stands between a Locker and its server, and can lose answers, or keep them back: when
// armed, the next answer after a request that contains a word is dropped and the connection closed,
// or is passed on later, with the request delivered and carried out.
type proxy struct {
	listener net.Listener
	conns    sync.WaitGroup

	mu      sync.Mutex
	server  string                // guarded by mu
	clients map[net.Conn]struct{} // guarded by mu: connections of clients
	word    string                // guarded by mu: "" when not armed
	spared  int                   // guarded by mu: requests with the word that are left out
	late    chan struct{}         // guarded by mu: nil, or closed when the answer is to be passed on
	asked   int                   // guarded by mu: requests
	lost    int                   // guarded by mu: answers dropped
	vain    int                   // guarded by mu: connections of clients for whom no server listened
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

// newLockerThrough opens a Locker whose connections lead through a new proxy.
func newLockerThrough(t *testing.T, db *sqltest.Database, opts ...leasetable.Option) (*proxy, *leasetable.Locker) {
	t.Helper()
	p, dsn := through(t, db)
	return p, newLocker(t, open(t, db.DriverName(), dsn), opts...)
}

// addressOf is where db's server is, as its DSN says it.
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
	drop := make(chan chan struct{}, 1) // has the answer's late
	p.conns.Go(func() {                 // the answers
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

// spare has the proxy leave out so many requests that its word is in.
func (p *proxy) spare(requests int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spared = requests
}

// loseAnswerTo arms the proxy.
func (p *proxy) loseAnswerTo(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word, p.late = word, nil
}

// delayAnswerTo arms the proxy. The answer is passed on when the function is called that it returns.
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

// requests is how often something was sent to the server at once: how many round trips there were.
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

// onWire is how bytes show in a request: as they are, or in hex on MySQL.
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
