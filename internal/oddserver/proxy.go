package oddserver

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/internal/locktest"
	"github.com/sqllock/sqllock/sqltest"
)

// Proxy stands before a server. When it has lost the server, it answers clients itself, as ProxySQL, MySQL Router, PgCat
// and others do. It reads no encrypted connections.
type Proxy struct {
	// Address is its host and port.
	Address string

	server   string
	postgres bool
	listener net.Listener
	running  sync.WaitGroup

	mu       sync.Mutex
	lost     Answers               // guarded by mu
	answered int                   // guarded by mu
	from, to []byte                // guarded by mu: see Rename
	open     map[net.Conn]struct{} // guarded by mu; nil after the end
}

// Answers are the codes of a proxy that has lost its server: PostgreSQL's SQLSTATE or MySQL's number. An empty code stands for
// what the server itself would answer.
type Answers struct {
	Connecting string // to a client that connects, which is then closed
	Statement  string // to each statement
}

// NewProxy starts a proxy before the server of db. It ends with the test.
func NewProxy(t *testing.T, db *sqltest.Database) *Proxy {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Address: listener.Addr().String(), server: locktest.AddressIn(db.DSN), postgres: db.Engine == sqltest.EnginePostgres,
		listener: listener, open: make(map[net.Conn]struct{}),
	}
	p.running.Go(p.accept)
	t.Cleanup(p.end)
	return p
}

// Lose has the proxy answer clients itself.
func (p *Proxy) Lose(answers Answers) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lost = answers
}

// Find has the server answer again.
func (p *Proxy) Find() { p.Lose(Answers{}) }

// Answered returns how many errors the proxy has answered with.
func (p *Proxy) Answered() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}

// Rename replaces a text in what the server answers by another one of the same length, or a message by others.
func (p *Proxy) Rename(from, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.from, p.to = []byte(from), []byte(to)
}

func (p *Proxy) end() {
	_ = p.listener.Close()
	p.mu.Lock()
	for c := range p.open {
		_ = c.Close()
	}
	p.open = nil
	p.mu.Unlock()
	p.running.Wait()
}

// keep has a connection end with the proxy.
func (p *Proxy) keep(c net.Conn) (done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		_ = c.Close()
		return func() {}
	}
	p.open[c] = struct{}{}
	return func() {
		_ = c.Close()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.open, c)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(client) })
	}
}

// answer returns one of the Answers, and counts it.
func (p *Proxy) answer(which func(Answers) string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	code := which(p.lost)
	if code != "" {
		p.answered++
	}
	return code
}

func (p *Proxy) serve(client net.Conn) {
	defer p.keep(client)()
	if code := p.answer(func(a Answers) string { return a.Connecting }); code != "" {
		p.refuse(client, code)
		return
	}
	server, err := net.Dial("tcp", p.server) //nolint:noctx // a server of this machine
	if err != nil {
		return
	}
	defer p.keep(server)()
	p.running.Go(func() {
		defer client.Close()
		p.copy(client, server)
	})
	if p.postgres {
		p.servePostgres(client, server)
	} else {
		p.serveMySQL(client, server)
	}
}

func (p *Proxy) copy(client, server net.Conn) {
	buf := make([]byte, 1<<15)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		said := buf[:n]
		if len(p.from) > 0 {
			said = bytes.ReplaceAll(said, p.from, p.to)
		}
		p.mu.Unlock()
		if _, err := client.Write(said); err != nil {
			return
		}
	}
}

// refuse answers a client that connects.
func (p *Proxy) refuse(client net.Conn, code string) {
	if p.postgres {
		if _, err := readPostgres(client, 0); err == nil {
			_, _ = client.Write(postgresError("FATAL", code))
		}
		return
	}
	_, _ = client.Write(mysqlError(0, code))
}

func statement(a Answers) string { return a.Statement }

// serveMySQL forwards what the client sends, or answers it.
func (p *Proxy) serveMySQL(client, server net.Conn) {
	const quit, longData, closeStatement = 0x01, 0x18, 0x19 // nobody answers these
	for {
		header := make([]byte, 4)
		if _, err := io.ReadFull(client, header); err != nil {
			return
		}
		packet := append(header, make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)...)
		if _, err := io.ReadFull(client, packet[4:]); err != nil {
			return
		}
		to, data := server, packet
		if command := packet[3] == 0 && len(packet) > 4; command && !bytes.Contains([]byte{quit, longData, closeStatement}, packet[4:5]) {
			if code := p.answer(statement); code != "" {
				to, data = client, mysqlError(1, code)
			}
		}
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

func mysqlError(number byte, code string) []byte {
	n, err := strconv.ParseUint(code, 10, 16)
	if err != nil {
		panic(err)
	}
	body := append(binary.LittleEndian.AppendUint16([]byte{0xff}, uint16(n)), "#HY000the proxy has lost its server"...)
	return append([]byte{byte(len(body)), 0, 0, number}, body...)
}

// servePostgres forwards what the client sends, or answers it: all messages up to a Sync with one error.
func (p *Proxy) servePostgres(client, server net.Conn) {
	header, code, within := 0, "", false // within a group of messages that ends with a Sync
	for {
		msg, err := readPostgres(client, header)
		if err != nil {
			return
		}
		switch {
		case header == 0: // the first message, which has no type
			header = 1
		case msg[0] == 'p', msg[0] == 'X': // a password, the end
		case !within:
			code = p.answer(statement)
			fallthrough
		default:
			within = msg[0] != 'S' && msg[0] != 'Q'
		}
		to, data := server, msg
		switch {
		case code != "" && within:
			continue
		case code != "" && header == 1:
			ready := []byte{'Z', 0, 0, 0, 5, 'I'}
			to, data, code = client, append(postgresError("ERROR", code), ready...), ""
		}
		if _, err := to.Write(data); err != nil {
			return
		}
	}
}

// readPostgres reads a message, which begins with a header of so many bytes before its length.
func readPostgres(from io.Reader, header int) ([]byte, error) {
	msg := make([]byte, header+4)
	if _, err := io.ReadFull(from, msg); err != nil {
		return nil, err
	}
	msg = append(msg, make([]byte, max(4, binary.BigEndian.Uint32(msg[header:]))-4)...)
	_, err := io.ReadFull(from, msg[header+4:])
	return msg, err
}

func postgresError(severity, code string) []byte {
	body := "S" + severity + "\x00V" + severity + "\x00C" + code + "\x00Mthe proxy has lost its server\x00\x00"
	return append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(body))), body...)
}
