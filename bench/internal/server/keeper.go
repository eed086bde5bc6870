package server

import (
	"errors"
	"fmt"
	"log"
	"runtime"
	"slices"

	"github.com/sqllock/sqllock/internal/netfault"
)

// Network puts a network between clients and the server, until end is called.
func (s *Server) Network() (n *netfault.Network, end func(), err error) {
	k, err := keep(func(k *keeper) { n = netfault.New(k, netfault.TCP(s.Host()), netfault.Bytes) })
	if err != nil {
		return nil, nil, err
	}
	return n, k.end, nil
}

// keeper is the sqltest.TB of what is started.
type keeper struct {
	cleanups []func()
	why      string // it was not started
}

// keep runs f, which starts something that ends with k.
func keep(f func(k *keeper)) (*keeper, error) {
	k, done, started := &keeper{}, make(chan struct{}), false
	go func() { // Fatalf ends a goroutine
		defer close(done)
		f(k)
		started = true
	}()
	<-done
	if !started {
		k.end()
		return nil, errors.New(k.why)
	}
	return k, nil
}

func (k *keeper) end() {
	for _, cleanup := range slices.Backward(k.cleanups) {
		cleanup()
	}
	k.cleanups = nil
}

// Helper and the methods below implement sqltest.TB.
func (k *keeper) Helper() {}

// Name returns a name for the databases.
func (k *keeper) Name() string { return "bench" }

// Failed returns false: no test runs here.
func (k *keeper) Failed() bool { return false }

// Cleanup registers f to be called at the end.
func (k *keeper) Cleanup(f func()) { k.cleanups = append(k.cleanups, f) }

// Logf logs what a user has to know.
func (k *keeper) Logf(format string, args ...any) { log.Printf(format, args...) }

// Fatalf keeps why nothing was started, and ends the calling goroutine.
func (k *keeper) Fatalf(format string, args ...any) {
	k.why = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// Skipf does the same as Fatalf.
func (k *keeper) Skipf(format string, args ...any) { k.Fatalf(format, args...) }
