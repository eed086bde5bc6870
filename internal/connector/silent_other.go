//go:build !unix

package connector

import "net"

// Silent reports whether nothing has come on a connection that was not read. That cannot be told here.
func Silent(net.Conn) bool { return false }
