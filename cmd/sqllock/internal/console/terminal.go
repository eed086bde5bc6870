package console

import (
	"math"
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Width returns the number of columns of a terminal. Anything else, and a terminal that does not know its size, is as
// wide as can be.
func Width(stream any) int {
	if IsTerminal(stream) {
		if width, _, err := term.GetSize(int(stream.(*os.File).Fd())); err == nil && width > 0 {
			return width
		}
	}
	return math.MaxInt
}
