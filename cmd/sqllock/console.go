package main

import (
	"io"
	"strings"
	"time"
)

// console connects the program to the outside: it has the streams and the environment, and reports messages.
type console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // KEY=value, as os.Environ returns it

	LogFormat      string        // of messages on stderr; empty: text
	CompletionTime time.Duration // bounds the query for names in shell completion
}

// getenv returns the value of an environment variable, or "".
func (c *console) getenv(key string) string {
	value, _ := c.lookupEnv(key)
	return value
}

// lookupEnv returns the value of an environment variable, and whether it is set.
func (c *console) lookupEnv(key string) (value string, set bool) {
	for _, pair := range c.Environ {
		if k, v, ok := strings.Cut(pair, "="); ok && k == key {
			value, set = v, true
		}
	}
	return value, set
}
