// Package console connects the program to the outside: its streams, its environment, what it reports, and the terminal.
// Texts of other users become safe for a terminal here.
package console

import (
	"io"
	"time"
)

// Console connects the program to the outside: it has the streams and the environment, and reports messages.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ returns it

	LogFormat      string        // of messages on stderr; empty: text
	CompletionTime time.Duration // bounds the query for names in shell completion
}
