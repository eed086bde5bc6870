//go:build !unix

package connector

import "net"

// Silent reports whether there is nothing to read on a connection, not even its end. It returns false: this system
// cannot tell.
func Silent(net.Conn) bool { return false }
