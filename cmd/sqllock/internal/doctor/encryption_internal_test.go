package doctor

import (
	"net"
	"testing"
)

// dialed is a connection to an address.
type dialed struct {
	net.Conn

	to net.Addr
}

func (d dialed) RemoteAddr() net.Addr { return d.to }

func TestHowFarAConnectionLeads(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]reach{
		"127.0.0.1": thisMachine, "127.1.2.3": thisMachine, "::1": thisMachine,
		"10.0.0.5": privateNetwork, "172.17.0.2": privateNetwork, "192.168.1.1": privateNetwork, "fd00::1": privateNetwork, "fe80::1": privateNetwork,
		"8.8.8.8": anywhere, "172.32.0.1": anywhere, "2001:db8::1": anywhere,
	} {
		if got := reachOf(dialed{to: &net.TCPAddr{IP: net.ParseIP(address)}}); got != want {
			t.Errorf("%s: %d; want %d", address, got, want)
		}
	}
	if reachOf(dialed{to: &net.UnixAddr{}}) != thisMachine || reachOf(nil) != anywhere {
		t.Error("a Unix socket, or a connection that is not known")
	}
}
