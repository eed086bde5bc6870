//go:build !unix

package mysql

import (
	"errors"
	"syscall"
)

// canPeek is false where sockets have no poller to wait in: only the heartbeat finds the end of a session.
const canPeek = false

func peek(syscall.RawConn) error { return errors.ErrUnsupported }
