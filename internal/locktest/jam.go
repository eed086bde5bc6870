package locktest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// jam dials connections that hang after begin: no operation on them has an effect, neither a deadline nor Close, and
// reads receive nothing.
type jam struct {
	begun atomic.Bool
	done  chan struct{}

	mu    sync.Mutex
	conns []net.Conn // guarded by mu
}

func (j *jam) begin() { j.begun.Store(true) }

// end makes everything that hangs fail.
func (j *jam) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	close(j.done)
	for _, c := range j.conns {
		_ = c.Close()
	}
}

func (j *jam) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.done: // a driver may dial to cancel a statement that hangs
		_ = c.Close()
		return nil, net.ErrClosed
	default:
	}
	j.conns = append(j.conns, c)
	return jammed{c, j}, nil
}

type jammed struct {
	net.Conn
	j *jam
}

// Read implements net.Conn.
func (c jammed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.j.begun.Load() {
		<-c.j.done
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Write implements net.Conn.
func (c jammed) Write(b []byte) (int, error) {
	if c.j.begun.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn.
func (c jammed) Close() error { return c.unlessBegun(c.Conn.Close) }

// SetDeadline implements net.Conn.
func (c jammed) SetDeadline(d time.Time) error {
	return c.unlessBegun(func() error { return c.Conn.SetDeadline(d) })
}

// SetReadDeadline implements net.Conn.
func (c jammed) SetReadDeadline(d time.Time) error {
	return c.unlessBegun(func() error { return c.Conn.SetReadDeadline(d) })
}

// SetWriteDeadline implements net.Conn.
func (c jammed) SetWriteDeadline(d time.Time) error {
	return c.unlessBegun(func() error { return c.Conn.SetWriteDeadline(d) })
}

func (c jammed) unlessBegun(f func() error) error {
	if c.j.begun.Load() {
		return nil
	}
	return f()
}
