package wire_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/wire"
)

// echo starts a server that answers with what it gets.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	return listener.Addr().String()
}

func dial(t *testing.T, delay time.Duration) (*wire.Wire, net.Conn) {
	t.Helper()
	w, err := wire.New(t.Context(), echo(t), delay)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", w.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return w, c
}

func TestAnAnswerTakesBothWays(t *testing.T) {
	t.Parallel()
	const delay = 30 * time.Millisecond
	_, c := dial(t, delay)
	for range 2 {
		began := time.Now()
		if _, err := c.Write([]byte("hello")); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 5)
		if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "hello" {
			t.Fatalf("%q, %v", answer, err)
		}
		if took := time.Since(began); took < 2*delay {
			t.Errorf("an answer after %v", took)
		}
	}
}

func TestNobodyIsToldOfACut(t *testing.T) {
	t.Parallel()
	w, c := dial(t, 0)
	w.Cut()
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := c.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 5)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d bytes, %v; want silence", n, err)
	}
}
