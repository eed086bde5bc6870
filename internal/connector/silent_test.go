//go:build unix

package connector_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/connector"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (near, far net.Conn) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if near, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	if far, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	return near, far
}

func TestAConnectionIsSilentUntilSomethingComes(t *testing.T) {
	t.Parallel()
	for what, send := range map[string]func(far net.Conn) error{
		"data":    func(far net.Conn) error { _, err := far.Write([]byte("x")); return err },
		"its end": func(far net.Conn) error { return far.Close() },
		"a reset": func(far net.Conn) error {
			_ = far.(*net.TCPConn).SetLinger(0) // then closing resets
			return far.Close()
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			near, far := pair(t)
			if !connector.Silent(near) {
				t.Error("it is not silent before")
			}
			if err := send(far); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			for connector.Silent(near) {
				if ctx.Err() != nil {
					t.Fatal("it is silent afterwards")
				}
			}
			if what != "data" {
				return
			}
			if n, err := near.Read(make([]byte, 2)); n != 1 || err != nil {
				t.Errorf("then %d bytes were read, %v", n, err)
			}
			if !connector.Silent(near) {
				t.Error("it is not silent after what had come was read")
			}
		})
	}
}

func TestAConnectionThatCannotBeAskedIsNotTakenForSilent(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	closed, _ := pair(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]net.Conn{"nothing": nil, "a pipe": near, "what was closed": closed} {
		if connector.Silent(c) {
			t.Errorf("%s is silent", what)
		}
	}
}
