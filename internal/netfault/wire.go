package netfault

import (
	"encoding/binary"
	"strings"
	"sync/atomic"
)

// Protocol makes a reader of one connection.
type Protocol func() wire

// wire reads what a connection carries. Drivers prepare a statement once, and then send its name or number only.
type wire interface {
	// request returns the statements that are complete with this piece of what a client sends, with their arguments.
	request(data []byte) (runs []string)
	// answer reads a piece of what the server sends.
	answer(data []byte)
	// readable reports false if the connection is encrypted or compressed.
	readable() bool
}

// opaque is a part of every wire that may become unreadable.
type opaque struct{ hidden atomic.Bool }

func (o *opaque) hide()          { o.hidden.Store(true) }
func (o *opaque) readable() bool { return !o.hidden.Load() }

// Bytes takes every piece that a client sends for a request.
func Bytes() wire { return bytesWire{} }

type bytesWire struct{}

func (bytesWire) request(data []byte) []string { return []string{string(data)} }
func (bytesWire) answer([]byte)                {}
func (bytesWire) readable() bool               { return true }

// Postgres reads PostgreSQL's protocol.
func Postgres() wire {
	return &postgresWire{prepared: make(map[string]string), bound: make(map[string]string)}
}

type postgresWire struct {
	opaque
	in       []byte            // what is not complete
	began    bool              // messages have a type
	mayCrypt bool              // the answer says whether the client may encrypt
	prepared map[string]string // statements, by name
	bound    map[string]string // statements with arguments, by the name of a portal
}

func (w *postgresWire) request(data []byte) (runs []string) {
	if !w.readable() {
		return nil
	}
	const tls = 0x16
	if !w.began && len(w.in) == 0 && len(data) > 0 && data[0] == tls {
		w.hide()
		return nil
	}
	for w.in = append(w.in, data...); ; {
		header := 4
		if w.began {
			header = 5
		}
		if len(w.in) < header {
			return runs
		}
		size := int(binary.BigEndian.Uint32(w.in[header-4:])) + header - 4
		if size < header || len(w.in) < size {
			return runs
		}
		body := string(w.in[header:size])
		if !w.began {
			w.begin(body)
		} else if run, ok := w.message(w.in[0], body); ok {
			runs = append(runs, run)
		}
		w.in = w.in[size:]
	}
}

// begin reads a message of the beginning, which has no type.
func (w *postgresWire) begin(body string) {
	const cancel, tls, gss = "\x04\xd2\x16\x2e", "\x04\xd2\x16\x2f", "\x04\xd2\x16\x30"
	switch {
	case strings.HasPrefix(body, tls), strings.HasPrefix(body, gss):
		w.mayCrypt = true
	case !strings.HasPrefix(body, cancel):
		w.began = true
	}
}

// message reads a message, and reports whether it runs a statement.
func (w *postgresWire) message(kind byte, body string) (run string, ok bool) {
	name, rest, _ := strings.Cut(body, "\x00")
	switch kind {
	case 'Q':
		return name, true
	case 'P':
		w.prepared[name], _, _ = strings.Cut(rest, "\x00")
	case 'B':
		statement, _, _ := strings.Cut(rest, "\x00")
		w.bound[name] = w.prepared[statement] + "\x00" + rest
	case 'E':
		return w.bound[name], true
	}
	return "", false
}

func (w *postgresWire) answer(data []byte) {
	if w.mayCrypt && len(data) > 0 {
		w.mayCrypt = false
		if data[0] == 'S' || data[0] == 'G' {
			w.hide()
		}
	}
}

// MySQL reads the protocol of MySQL and MariaDB.
func MySQL() wire { return &mysqlWire{prepared: make(map[uint32]string)} }

type mysqlWire struct {
	opaque
	in        []byte            // what is not complete
	began     bool              // the client has sent its first packet
	preparing string            // the statement whose number is in the next answer
	said      []byte            // the beginning of that answer
	prepared  map[uint32]string // statements, by number
}

func (w *mysqlWire) request(data []byte) (runs []string) {
	for w.in = append(w.in, data...); w.readable() && len(w.in) >= 4; {
		size := (int(w.in[0]) | int(w.in[1])<<8 | int(w.in[2])<<16) + 4
		if len(w.in) < size {
			break
		}
		number, body := w.in[3], string(w.in[4:size])
		switch {
		case !w.began:
			w.begin(body)
		case number == 0 && body != "": // other packets belong to a request that has begun
			if run, ok := w.command(body); ok {
				runs = append(runs, run)
			}
		}
		w.in = w.in[size:]
	}
	return runs
}

func (w *mysqlWire) begin(body string) {
	const compress, tls, zstd = 1 << 5, 1 << 11, 1 << 26
	w.began = true
	if len(body) < 4 {
		return
	}
	flags := binary.LittleEndian.Uint32([]byte(body))
	if flags&(compress|zstd) != 0 || flags&tls != 0 && len(body) == 32 {
		w.hide()
	}
}

// command reads a command, and reports whether it runs a statement.
func (w *mysqlWire) command(body string) (run string, ok bool) {
	const query, prepare, execute = 0x03, 0x16, 0x17
	switch {
	case body[0] == query:
		return body[1:], true
	case body[0] == prepare:
		w.preparing, w.said = body[1:], nil
	case body[0] == execute && len(body) >= 5:
		return w.prepared[binary.LittleEndian.Uint32([]byte(body[1:]))] + "\x00" + body, true
	}
	return "", false
}

func (w *mysqlWire) answer(data []byte) {
	if w.preparing == "" {
		return
	}
	const header, done = 4, 0
	w.said = append(w.said, data...)
	if len(w.said) <= header || w.said[header] == done && len(w.said) < header+5 {
		return
	}
	if w.said[header] == done {
		w.prepared[binary.LittleEndian.Uint32(w.said[header+1:])] = w.preparing
	}
	w.preparing = ""
}
