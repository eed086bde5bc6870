// Package server starts the servers, and reads their counters.
package server

import (
	"context"
	"net"
	"strconv"
	"time"

	"github.com/sqllock/sqllock/bench/internal/lock"
)

// MaxConnections is the limit of every server. It is far above their defaults, so that all kinds can be measured.
const MaxConnections = 4000

// Server is a server that nobody else uses.
type Server struct {
	Engine  lock.Engine
	Version string // such as "PostgreSQL 15.18, programs"
	Address string // a DSN, or host:port

	host    string // host:port
	counter func(ctx context.Context) (int64, error)
	root    int                      // the process that all others of the server descend from; 0 if it is not known
	at      func(host string) string // the Address by way of another host:port
	end     func()
}

// Statements returns how many statements, commands or messages clients have ever sent, without those of Statements.
func (s *Server) Statements(ctx context.Context) (int64, error) { return s.counter(ctx) }

// CPU returns the time that the processes of the server have spent on a processor; nil if they are not known.
func (s *Server) CPU() CPU {
	if s.root == 0 {
		return nil
	}
	return cpuOf(s.root)
}

// Connections returns how many connections the server has, with those of this process.
func (s *Server) Connections() (int, error) {
	_, port, err := net.SplitHostPort(s.host)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return 0, err
	}
	return established(n)
}

// OthersConnections is Connections when those that were closed just now are over.
func (s *Server) OthersConnections() (n int, err error) {
	for last := -1; n != last; time.Sleep(200 * time.Millisecond) {
		last = n
		if n, err = s.Connections(); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// Host returns host:port.
func (s *Server) Host() string { return s.host }

// At returns the address of the server by way of another host:port.
func (s *Server) At(host string) string { return s.at(host) }

// End ends the server and removes its data.
func (s *Server) End() { s.end() }
