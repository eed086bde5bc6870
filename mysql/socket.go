package mysql

import (
	"context"
	"net"

	gomysql "github.com/go-sql-driver/mysql"
)

// socket is the socket of a connection. A deadline on it replaces a context for a statement, for which the driver would
// switch goroutines twice. It is known for the connections that a Locker dials itself.
type socket struct{ net.Conn }

type socketKey struct{}

// withSocket returns a context to connect with, and the socket of that connection. The socket has no Conn if it is not
// known.
func withSocket(ctx context.Context) (context.Context, *socket) {
	s := &socket{}
	return context.WithValue(ctx, socketKey{}, s), s
}

// dialSockets makes config record the sockets that it dials, unless it has a DialFunc or a network of its own.
func dialSockets(config *gomysql.Config) {
	if config.DialFunc != nil || config.Net != "tcp" && config.Net != "unix" {
		return
	}
	dialer := net.Dialer{Timeout: config.Timeout}
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, address)
		if s, ok := ctx.Value(socketKey{}).(*socket); ok && err == nil {
			s.Conn = c
		}
		return c, err
	}
}
