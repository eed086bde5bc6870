//go:build unix

package mysql

import (
	"errors"
	"io"
	"os"
	"syscall"
)

const canPeek = true

// peek waits until there is something to read on a socket, which it leaves there, or nothing will come any more. It
// returns which of them, and never nil.
func peek(raw syscall.RawConn) error {
	var n int
	var failed error
	err := raw.Read(func(fd uintptr) bool {
		var one [1]byte
		for failed = syscall.EINTR; errors.Is(failed, syscall.EINTR); {
			n, _, failed = syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		}
		return !errors.Is(failed, syscall.EAGAIN)
	})
	switch {
	case err != nil:
		return err
	case n > 0:
		return errSpoke
	case failed != nil:
		return os.NewSyscallError("recvfrom", failed)
	}
	return io.EOF
}
