package console

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
