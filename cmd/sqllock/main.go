// Command sqllock runs a command while it holds a lock in a SQL database, and shows and takes away
// the locks that others hold.
//
//	sqllock run NAME -- COMMAND…
//	sqllock ls
//
// Its help is its documentation: sqllock --help, sqllock run --help.
package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	m := &Main{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), completionTime: time.Second}
	os.Exit(m.Run(context.Background(), os.Args[1:]))
}

// Main is the program and what it has of the world.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ returns it

	completionTime time.Duration // for the names that a shell completes

	logFormat string // of what is said on stderr; empty: text
}

// Run runs the program with these arguments and returns its exit code. When ctx ends, the
// command that runs under a lock is ended as if the lock had been lost.
func (m *Main) Run(ctx context.Context, args []string) int {
	root := m.rootCommand() //nolint:contextcheck // its commands get ctx from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	m.note(err)
	return codeOf(err)
}

// getenv returns the value of an environment variable, or nothing.
func (m *Main) getenv(key string) string {
	value, _ := m.lookupEnv(key)
	return value
}

// lookupEnv returns the value of an environment variable, and whether it is set.
func (m *Main) lookupEnv(key string) (value string, set bool) {
	for _, pair := range m.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == key {
			value, set = v, true
		}
	}
	return value, set
}
