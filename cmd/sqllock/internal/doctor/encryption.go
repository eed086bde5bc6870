package doctor

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"net"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/cluster"
	"github.com/sqllock/sqllock/internal/connector"
	"github.com/sqllock/sqllock/schema"
)

// encryption finds connections in clear text that leave this machine and its private network. PostgreSQL is not asked: behind
// a pooler pg_stat_ssl is about the pooler's connection.
func encryption(ctx context.Context, p *patient) (Finding, error) {
	conn, err := p.DB.Connx(ctx)
	if err != nil {
		return Finding{}, err
	}
	defer func() { _ = conn.Close() }() // returns it to the pool
	socket, encrypted, err := p.socket(ctx, conn)
	add := "sslmode=verify-full"
	if p.Dialect == schema.MySQL {
		add = "tls=true or ssl-ca=FILE"
	}
	switch {
	case err != nil:
		return Finding{}, err
	case encrypted:
		return fine("the connection is encrypted"), nil
	}
	switch reachOf(socket) {
	case thisMachine:
		return fine("none, and the connection does not leave this machine"), nil
	case privateNetwork:
		return fine("none: who is between here and the server, in a private network, can read all, and answer in its place"), nil
	}
	return beware("add "+add+" to the URL (?… or &…)",
		"none: who is between here and the server can read all, and answer in its place"), nil
}

// socket returns the socket of a connection, or nil if it is not known, and reports whether the connection is encrypted.
func (p *patient) socket(ctx context.Context, conn *sqlx.Conn) (socket net.Conn, encrypted bool, err error) {
	err = conn.Raw(func(dc any) error {
		switch c := dc.(type) {
		case *stdlib.Conn:
			socket = c.Conn().PgConn().Conn()
			_, encrypted = socket.(*tls.Conn)
		case driver.Conn:
			socket = connector.Socket(c)
		}
		return nil
	})
	if err != nil || p.Dialect == schema.Postgres {
		return socket, encrypted, err
	}
	status, err := cluster.Read(ctx, conn, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
	return socket, status["ssl_cipher"] != "", err
}

// reach is how far a connection leads.
type reach int

const (
	anywhere reach = iota
	privateNetwork
	thisMachine
)

// reachOf returns how far a connection leads, by its address.
func reachOf(socket net.Conn) reach {
	if socket == nil {
		return anywhere
	}
	switch to := socket.RemoteAddr().(type) {
	case *net.UnixAddr:
		return thisMachine
	case *net.TCPAddr:
		switch {
		case to.IP.IsLoopback():
			return thisMachine
		case to.IP.IsPrivate(), to.IP.IsLinkLocalUnicast():
			return privateNetwork
		}
	}
	return anywhere
}
