package sqltest

import (
	"time"

	"github.com/sqllock/sqllock/internal/netfault"
)

// Network is a network between a test's code and its database, with faults that the test chooses:
//
//	db := sqltest.Postgres(t)
//	network := db.Network(t)
//	shop := Open(network.DSN) // the code under test
//	lost := network.DropAnswer("INSERT INTO orders")
//	err := shop.Order(ctx, "book") // the row was inserted, and the connection breaks before the answer arrives
//	<-lost.Answered()
//
// It forwards from a port of 127.0.0.1, and it begins without faults. Its methods may be called by any goroutine and return at
// once, unless they say otherwise. It ends with the test, and with it all its connections.
type Network struct {
	// DSN opens the database through this network. See Database.DSN.
	DSN string

	tb  TB
	net *netfault.Network
}

// Network starts a network to this database. Only connections that are opened with its DSN go through it. It ends the
// test with Fatalf on SQLite, which has no network.
func (db *Database) Network(tb TB) *Network {
	tb.Helper()
	server, reads := db.endpoint(tb)
	n := &Network{tb: tb, net: netfault.New(tb, server, reads)}
	p, _ := productOf(db.Engine)
	var err error
	if n.DSN, err = p.at(db.DSN, n.net.Address()); err != nil {
		tb.Fatalf("sqltest: a network to %s: %v", db.Server, redactError(p, db.DSN, err))
	}
	return n
}

// endpoint returns the server of db and its protocol.
func (db *Database) endpoint(tb TB) (netfault.Server, netfault.Protocol) {
	tb.Helper()
	p, ok := productOf(db.Engine)
	if !ok {
		tb.Fatalf("sqltest: %s has no network", db.Server)
	}
	network, address, err := p.endpoint(db.DSN)
	if err != nil {
		tb.Fatalf("sqltest: a network to %s: %v", db.Server, redactError(p, db.DSN, err))
	}
	return netfault.Server{Network: network, Address: address}, choose[netfault.Protocol](db.Engine == EnginePostgres, netfault.Postgres, netfault.MySQL)
}

// Address returns the host and the port on which the network listens.
func (n *Network) Address() string { return n.net.Address() }

// Cut forwards nothing more in either direction, like a network that loses every packet. Neither side is told, and a
// connection that is opened now gets no answer. After Heal, what was sent meanwhile arrives.
func (n *Network) Cut() { n.net.Cut() }

// Delay makes every round trip last longer by this time, half of it in each direction. Opening a connection takes
// longer, too. Zero ends it.
func (n *Network) Delay(roundTrip time.Duration) { n.net.Delay(roundTrip) }

// Throttle limits each connection to some bytes per second, in each direction. Zero ends it.
func (n *Network) Throttle(bytesPerSecond int) { n.net.Throttle(bytesPerSecond) }

// Disconnect ends all connections and tells both sides, like a proxy that restarts. New connections go through.
func (n *Network) Disconnect() { n.net.Disconnect() }

// Refuse ends all connections and refuses new ones, like a server that is down, until Heal.
func (n *Network) Refuse() { n.net.Refuse() }

// HalfOpen ends the open connections for the clients, but the server is not told: its sessions keep their transactions
// and locks, until Heal or until the server gives them up. New connections go through.
func (n *Network) HalfOpen() { n.net.HalfOpen() }

// Forget loses the open connections, and neither side is told, like a firewall that has forgotten them: a client that
// uses one waits until it gives up. The server keeps its sessions, as with HalfOpen. New connections go through.
func (n *Network) Forget() { n.net.Forget() }

// Heal ends Cut, Delay, Throttle and Refuse. The connections that HalfOpen and Forget have lost end. Answers that are held
// or are to be dropped stay so. It ends the test with Fatalf if it cannot listen again.
func (n *Network) Heal() {
	n.tb.Helper()
	n.net.Heal()
}

// SwitchTo ends all connections and leads new ones to the server of another database of the same engine, like a load balancer
// after a failover. The name of the database and the user stay those of DSN.
func (n *Network) SwitchTo(db *Database) {
	n.tb.Helper()
	server, _ := db.endpoint(n.tb)
	n.net.SwitchTo(server)
}

// Requests returns how many times the clients have sent something: with most drivers, the number of round trips. Opening a
// connection takes some of them.
func (n *Network) Requests() int { return n.net.Requests() }

// Connections returns how many connections the clients have opened.
func (n *Network) Connections() int { return n.net.Connections() }

// HoldAnswer holds back the answer to the next request that runs a statement with this text in it or in its arguments, and
// what the server sends on that connection afterwards. [Answer.Pass] and [Answer.Drop] end that; until then the client waits.
//
// The text is found in upper and lower case, and also when the statement was prepared before. Arguments are searched as they
// are sent. The end of a transaction is a request of its own: "commit". Connections must not be encrypted or compressed.
func (n *Network) HoldAnswer(text string) *Answer { return &Answer{n.net.HoldAnswer(text)} }

// DropAnswer is like HoldAnswer, but drops the answer when it comes and ends the connection: the statement has run, and the
// client does not know.
func (n *Network) DropAnswer(text string) *Answer { return &Answer{n.net.DropAnswer(text)} }

// Answer is the server's answer to one request. See [Network.HoldAnswer].
type Answer struct{ answer *netfault.Answer }

// Skip spares the next requests of this number, before the one that the answer is for. It returns a.
func (a *Answer) Skip(requests int) *Answer {
	a.answer.Skip(requests)
	return a
}

// Asked returns a channel that is closed when the request has been sent to the server.
func (a *Answer) Asked() <-chan struct{} { return a.answer.Asked() }

// Answered returns a channel that is closed when the server has answered. The statement has run then, and the answer is held
// back or dropped.
func (a *Answer) Answered() <-chan struct{} { return a.answer.Answered() }

// Pass passes the answer on. It returns when the answer has been sent to the client, unless the network is cut. If the request
// has not come, it will not be waited for any more.
func (a *Answer) Pass() { a.answer.Pass() }

// Drop drops the answer and ends its connection.
func (a *Answer) Drop() { a.answer.Drop() }
