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

// encryption finds connections that leave this machine in clear text. PostgreSQL is not asked: behind a pooler pg_stat_ssl
// is about the pooler's connection.
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
	case isLocal(socket):
		return fine("none, and the connection does not leave this machine"), nil
	}
	return beware("add "+add+" to the URL (?… or &…), on a network that you do not trust",
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

// isLocal reports whether a connection leads to this machine.
func isLocal(socket net.Conn) bool {
	if socket == nil {
		return false
	}
	switch to := socket.RemoteAddr().(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return to.IP.IsLoopback()
	}
	return false
}
