// Package refusal has the error of a server that is refused for a kind of lock.
package refusal

import (
	"fmt"

	"github.com/sqllock/sqllock"
)

// Error says why a server is refused; it matches sqllock.ErrRefused.
type Error struct {
	Seen    string // what was seen
	Instead string // what to use instead
}

// Error implements error.
func (e *Error) Error() string {
	return fmt.Sprintf("refused: %s; %s", e.Seen, e.Instead)
}

// Is reports whether target is sqllock.ErrRefused.
func (e *Error) Is(target error) bool { return target == sqllock.ErrRefused }
