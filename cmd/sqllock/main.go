// Command sqllock runs a command while it holds a lock in a SQL database. It also shows the locks of others, and takes
// them away.
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

// Main is the program with its connections to the outside.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ returns it

	completionTime time.Duration // bounds the query for names in shell completion

	logFormat string // of messages on stderr; empty: text
}

// Run runs the program with these arguments and returns its exit code. When ctx ends, it ends the command that runs
// under a lock as if the lock had been lost.
func (m *Main) Run(ctx context.Context, args []string) int {
	root := m.rootCommand() //nolint:contextcheck // its commands get ctx from ExecuteContext
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	m.note(err)
	return codeOf(err)
}

// getenv returns the value of an environment variable, or "".
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
