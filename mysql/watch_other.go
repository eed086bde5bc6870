//go:build !unix

package mysql

import (
	"errors"
	"syscall"
)

// canPeek is false where sockets have no poller to wait in: the end of a session is seen by the heartbeat.
const canPeek = false

func peek(syscall.RawConn) error { return errors.ErrUnsupported }
