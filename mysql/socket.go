package mysql

import (
	"context"
	"net"

	gomysql "github.com/go-sql-driver/mysql"
)

// socket is what a connection is made of. A deadline on it is all that a statement needs of a
// context, for which the driver changes goroutines twice. It is known of connections that a
// Locker dials itself.
type socket struct{ net.Conn }

type socketKey struct{}

// withSocket makes a context to connect with, and what will be the connection's socket; that has
// no Conn if it is not known.
func withSocket(ctx context.Context) (context.Context, *socket) {
	s := &socket{}
	return context.WithValue(ctx, socketKey{}, s), s
}

// dialSockets has connections dialled as the driver does, unless it does that in a way of its own.
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
