//go:build unix

package netfault

import (
	"net/netip"
	"syscall"
)

// keepPort binds an address of IPv4 and does not listen: connections are refused, and nobody who asks for a free port gets this one.
// giveUp may be called once; it is nil if the port was not kept.
func keepPort(address string) (giveUp func()) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().Is4() {
		return nil
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return nil
	}
	syscall.CloseOnExec(fd)
	_ = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1) // connections to the port may be open
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
		_ = syscall.Close(fd)
		return nil
	}
	return func() { _ = syscall.Close(fd) }
}
