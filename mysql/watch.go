package mysql

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/internal/session"
)

// watcher notices when the server ends an idle connection. It waits in the runtime's poller, and takes no byte from the
// driver. The driver cannot read meanwhile; no statement is sent before wait has returned.
type watcher struct {
	socket  net.Conn
	raw     syscall.RawConn
	doubted time.Time // when the server last sent something without being asked
}

// doubtEvery is the shortest time between two doubts. A server that keeps sending without being asked costs one
// statement in that time. For the rest of it, only heartbeats watch the connection.
const doubtEvery = time.Second

// errSpoke says that there is something to read on an idle connection.
var errSpoke = errors.New("the server spoke without being asked")

// newWatcher returns nil for a socket that cannot be watched. A socket of another type may have read ahead, or have its
// own kind of deadlines.
func newWatcher(socket net.Conn) *watcher {
	var raw syscall.RawConn
	var err error
	switch c := socket.(type) {
	case *net.TCPConn:
		raw, err = c.SyscallConn()
	case *net.UnixConn:
		raw, err = c.SyscallConn()
	}
	if !canPeek || raw == nil || err != nil {
		return nil
	}
	return &watcher{socket: socket, raw: raw}
}

// watch sets up the watcher of the connection, if its socket is known.
func (c *conn) watch() error {
	if c.socket.Conn != nil {
		c.watcher = newWatcher(c.socket.Conn)
		return nil
	}
	return c.sc.Raw(func(dc any) error {
		c.watcher = newWatcher(connector.Socket(dc.(driver.Conn)))
		return nil
	})
}

// wait returns nil when ctx ends, errSpoke when there is something to read, and another error when the connection has
// ended. It leaves no read deadline on the socket.
func (w *watcher) wait(ctx context.Context) error {
	if err := w.socket.SetReadDeadline(time.Time{}); err != nil { // the driver leaves its own, if it has a timeout
		return err
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = w.socket.SetReadDeadline(time.Unix(1, 0)) // fails on a closed socket only
	})
	err := peek(w.raw)
	if stop() {
		return err
	}
	<-interrupted // the deadline is set now, and not after the reset
	if errReset := w.socket.SetReadDeadline(time.Time{}); errReset != nil {
		return errReset
	}
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, errSpoke) { // the next statement reads what the server sent
		return nil
	}
	return err
}

// Watch implements session.Conn. When a server sends something without being asked, it is the reason why it ends the
// session, or, in TLS, a ticket or a key that the driver is to read. What comes after that is not seen.
func (c *conn) Watch(ctx context.Context) error {
	if c.watcher == nil {
		<-ctx.Done()
		return nil
	}
	err := c.watcher.wait(ctx)
	switch now := time.Now(); {
	case err == nil:
		return nil
	case !errors.Is(err, errSpoke):
		return fmt.Errorf("the connection ended: %w", err)
	case now.Sub(c.watcher.doubted) < doubtEvery:
		<-ctx.Done()
		return nil
	default:
		c.watcher.doubted = now
		return session.ErrDoubt
	}
}
