//go:build unix

package connector

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// Silent reports whether there is nothing to read on c: neither data nor the end of the connection. It asks this
// machine, not the peer. It returns false if that cannot be told.
func Silent(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	sc, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK) // it does not block, as no socket of Go's does
		silent = errors.Is(err, syscall.EAGAIN)
	})
	return silent && err == nil
}
