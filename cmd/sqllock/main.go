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
	"os"
	"time"
)

func main() {
	c := &console{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), CompletionTime: time.Second}
	os.Exit(Run(context.Background(), c, os.Args[1:]))
}
