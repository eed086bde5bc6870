// Command keepservers starts the servers that tests use, as the environment says (see package sqltest), writes
// "ready", and keeps them up until its standard input ends. Test processes that are started one after the other
// meanwhile share them. scripts/mutate runs it.
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
	for _, open := range []func(sqltest.TB) *sqltest.Database{sqltest.Postgres, sqltest.MySQL, sqltest.MariaDB} {
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

// keeper is the sqltest.TB of a server. A server that cannot be had is for the tests to complain about.
type keeper struct{ cleanups []func() }

func (k *keeper) end() {
	for _, cleanup := range slices.Backward(k.cleanups) {
		cleanup()
	}
}

// Helper and the others are those of sqltest.TB.
func (k *keeper) Helper() {}

// Name is what the databases are called after.
func (k *keeper) Name() string { return "keepservers" }

// Failed reports nothing: no test runs here.
func (k *keeper) Failed() bool { return false }

// Cleanup has f called at the end.
func (k *keeper) Cleanup(f func()) { k.cleanups = append(k.cleanups, f) }

// Logf leaves out what is of interest in a test only.
func (k *keeper) Logf(string, ...any) {}

// Fatalf says why there is no server, and ends the goroutine that asked for it.
func (k *keeper) Fatalf(format string, args ...any) {
	log.Printf(format, args...)
	runtime.Goexit()
}

// Skipf does the same.
func (k *keeper) Skipf(format string, args ...any) { k.Fatalf(format, args...) }
