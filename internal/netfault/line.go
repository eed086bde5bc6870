package netfault

import (
	"context"
	"net"
	"sync"
	"time"
)

// line is one connection of a client, and the one to the server.
type line struct {
	network *Network
	client  net.Conn
	ended   chan struct{} // closed when the line has been ended
	once    sync.Once

	server net.Conn // guarded by the network's mu; nil at first
	silent bool     // guarded by the network's mu: it carries nothing more, and no side is told
	due    *Answer  // guarded by the network's mu: what happens to the next answer

	reading sync.Mutex // held while wire is used
	wire    wire       // guarded by reading, except for readable
}

// packet is data on its way.
type packet struct {
	arrives time.Time
	data    []byte
	sent    chan struct{} // closed when the data has been sent on; may be nil
}

// serve carries the line, which was accepted by from, until it ends.
func (l *line) serve(from net.Listener) {
	n := l.network
	n.mu.Lock()
	n.connections++
	n.lines[l] = struct{}{}
	handshake, server := time.Now().Add(n.faults.roundTrip), n.server
	if n.port.listener != from { // it was accepted as Refuse began
		l.end()
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.end()
		delete(n.lines, l)
		if !l.wire.readable() {
			n.unread++
		}
	}()
	if !l.carries(handshake) || !l.dial(server) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { l.forward(l.server, l.client, l.answer) })
	l.forward(l.client, l.server, l.request)
	both.Wait()
}

// dial connects to the server, and reports whether the line is complete.
func (l *line) dial(to Server) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		select {
		case <-l.ended:
			cancel()
		case <-l.network.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	server, err := (&net.Dialer{}).DialContext(ctx, to.Network, to.Address)
	if err != nil {
		return false
	}
	l.network.mu.Lock()
	defer l.network.mu.Unlock()
	l.server = server
	select {
	case <-l.ended:
		_ = server.Close()
		return false
	case <-l.network.closed:
		return false
	default:
		return true
	}
}

// end closes both sides. The caller holds the network's mu.
func (l *line) end() {
	l.once.Do(func() { close(l.ended) })
	_ = l.client.Close()
	if l.server != nil {
		_ = l.server.Close()
	}
}

// lines is a set of connections.
type lines map[*line]struct{}

// end ends all of them. The caller holds the network's mu.
func (ls lines) end() {
	for l := range ls {
		l.end()
	}
}

// forward forwards what one side sends, and finally its end. It passes everything to see first, which may refuse it.
func (l *line) forward(from, to net.Conn, see func([]byte) (sent chan struct{}, ok bool)) {
	packets := make(chan packet, 1000)
	l.network.running.Go(func() {
		defer close(packets)
		for {
			buf := make([]byte, 1<<15)
			read, err := from.Read(buf)
			if err != nil {
				return
			}
			sent, ok := see(buf[:read])
			if !ok {
				return
			}
			packets <- packet{time.Now().Add(l.faults().roundTrip / 2), buf[:read], sent}
		}
	})
	for p := range packets {
		if l.carries(p.arrives) {
			l.write(to, p.data)
		}
		if p.sent != nil {
			close(p.sent)
		}
	}
	if l.carries(time.Time{}) {
		_ = to.Close()
	}
	_ = from.Close()
}

// faults returns those of the network now.
func (l *line) faults() faults {
	n := l.network
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.faults
}

// carries waits until a moment has come at which the network forwards. It reports false if the line carries nothing more.
func (l *line) carries(arrives time.Time) bool {
	n := l.network
	for {
		n.mu.Lock()
		changed, cut, silent := n.changed, n.faults.cut, l.silent
		n.mu.Unlock()
		wait := time.Until(arrives)
		if silent {
			return false
		}
		if !cut && wait <= 0 {
			return true
		}
		var timer <-chan time.Time
		if !cut {
			timer = time.After(wait)
		}
		select {
		case <-changed:
		case <-timer:
		case <-l.ended:
			return false
		case <-n.closed:
			return false
		}
	}
}

// write sends data at the network's speed. If the other side has gone, its own reader notices.
func (l *line) write(to net.Conn, data []byte) {
	for len(data) > 0 {
		speed := l.faults().perSecond
		piece := data
		if speed > 0 {
			piece = data[:min(len(data), max(1, speed/50))]
		}
		if _, err := to.Write(piece); err != nil {
			return
		}
		data = data[len(piece):]
		if speed > 0 && !l.carries(time.Now().Add(time.Duration(len(piece))*time.Second/time.Duration(speed))) {
			return
		}
	}
}
