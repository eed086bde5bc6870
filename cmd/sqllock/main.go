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

	"github.com/sqllock/sqllock/cmd/sqllock/internal/commands"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

func main() {
	c := &console.Console{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), CompletionTime: time.Second}
	code, interrupted := commands.Run(context.Background(), c, os.Args[1:])
	if interrupted {
		exit.DieOfInterrupt()
	}
	os.Exit(code)
}
