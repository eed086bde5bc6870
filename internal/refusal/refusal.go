// Package refusal says why a kind of lock is refused on a server.
package refusal

import (
	"fmt"

	"github.com/sqllock/sqllock"
)

// Error matches sqllock.ErrRefused.
type Error struct {
	Seen    string // what was seen
	Instead string // what to use instead
}

// Error says both.
func (e *Error) Error() string {
	return fmt.Sprintf("refused: %s; %s", e.Seen, e.Instead)
}

// Is reports whether target is sqllock.ErrRefused.
func (e *Error) Is(target error) bool { return target == sqllock.ErrRefused }
