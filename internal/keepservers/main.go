// Command keepservers starts the test servers that the environment selects (see package sqltest), writes "ready", and
// keeps them running until its standard input ends. Test processes that are started one after the other meanwhile share
// them. scripts/mutate runs it.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"runtime"
	"slices"
	"sync"

	"github.com/sqllock/sqllock/sqltest"
)

func main() {
	var all sync.WaitGroup
	var keepers []*keeper
	for _, open := range []func(sqltest.TB, ...sqltest.Option) *sqltest.Database{sqltest.Postgres, sqltest.MySQL, sqltest.MariaDB} {
		k := &keeper{}
		keepers = append(keepers, k)
		all.Go(func() { log.Print(open(k).Server) })
	}
	all.Wait()
	_, _ = fmt.Fprintln(os.Stdout, "ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	for _, k := range keepers {
		k.end()
	}
}

// keeper is the sqltest.TB of a server. If a server cannot be started, the tests will report that.
type keeper struct{ cleanups []func() }

func (k *keeper) end() {
	for _, cleanup := range slices.Backward(k.cleanups) {
		cleanup()
	}
}

// Helper and the methods below implement sqltest.TB.
func (k *keeper) Helper() {}

// Name returns a name for the databases.
func (k *keeper) Name() string { return "keepservers" }

// Failed returns false: no test runs here.
func (k *keeper) Failed() bool { return false }

// Cleanup registers f to be called at the end.
func (k *keeper) Cleanup(f func()) { k.cleanups = append(k.cleanups, f) }

// Logf discards messages that matter only in a test.
func (k *keeper) Logf(string, ...any) {}

// Fatalf logs why there is no server, and ends the calling goroutine.
func (k *keeper) Fatalf(format string, args ...any) {
	log.Printf(format, args...)
	runtime.Goexit()
}

// Skipf does the same as Fatalf.
func (k *keeper) Skipf(format string, args ...any) { k.Fatalf(format, args...) }
