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

	"github.com/sqllock/sqllock/sqltest"
)

// proxy stands between a Locker and its server, and can lose answers: when armed, the next
// answer after a request that contains a word is dropped and the connection closed, with
// the request delivered and carried out.
type proxy struct {
	listener net.Listener
	server   string
	conns    sync.WaitGroup

	mu   sync.Mutex
	word string // guarded by mu: "" when not armed
	lost int    // guarded by mu: answers dropped
}

// through returns a DSN that leads to db through a new proxy.
func through(t *testing.T, db *sqltest.Database) (*proxy, string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(db.DSN, "127.0.0.1:")
	port := rest[:strings.IndexAny(rest, ")/")]
	p := &proxy{listener: listener, server: "127.0.0.1:" + port}
	p.conns.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close() // ends accept
		p.conns.Wait()
	})
	return p, strings.Replace(db.DSN, p.server, listener.Addr().String(), 1)
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
	server, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", p.server)
	if err != nil {
		return
	}
	drop := make(chan struct{})
	var once sync.Once
	p.conns.Go(func() { // the answers
		defer client.Close()
		buf := make([]byte, 1<<16)
		for {
			n, err := server.Read(buf)
			if err != nil {
				return
			}
			select {
			case <-drop:
				p.mu.Lock()
				p.lost++
				p.mu.Unlock()
				return
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
		if p.word != "" && strings.Contains(string(buf[:n]), p.word) {
			p.word = ""
			once.Do(func() { close(drop) })
		}
		p.mu.Unlock()
		if _, err := server.Write(buf[:n]); err != nil && !errors.Is(err, io.EOF) {
			return
		}
	}
}

// loseAnswerTo arms the proxy.
func (p *proxy) loseAnswerTo(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.word = word
}

func (p *proxy) answersLost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

// onWire is how bytes show in a request: as they are, or in hex on MySQL.
func onWire(db *sqltest.Database, b []byte) string {
	if db.Engine == sqltest.EnginePostgres {
		return string(b)
	}
	return hex.EncodeToString(b)
}
